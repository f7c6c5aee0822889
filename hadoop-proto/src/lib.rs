//! Wire schema.
