//! Integration tests, one binary: everything here drives the product from outside, as its peers do.
mod peers;
mod support;
mod trials;
