//! Integration tests, one binary: everything here drives the product from outside, as its peers do.
mod admin;
mod cli;
mod compat;
mod damaged;
mod differential;
mod fence;
mod golden;
mod model;
mod peers;
mod scenario;
mod sim;
mod support;
mod tools;
mod trials;
