//! Purpose: (see src/ARCHITECTURE.md)

pub mod image;
