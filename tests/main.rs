//! Integration tests, one binary: everything here drives the product from outside, as its peers do.
mod admin;
mod cli;
mod compat;
mod damaged;
mod fence;
mod golden;
mod model;
mod peers;
mod sim;
mod support;
mod trials;
