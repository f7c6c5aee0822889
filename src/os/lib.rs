//! Purpose: (see src/ARCHITECTURE.md)
