//! Delegation tokens and master keys as durable tables. Passwords, renewal rules and expiry belong to `security`.

use std::collections::BTreeMap;
use std::sync::Arc;
use vocab::TimeMs;
use vocab::time::MonotonicMs;

/// A token's identifier (Hadoop's `DelegationTokenIdentifier`) and its expiry.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
#[allow(missing_docs)] // the fields of Hadoop's AbstractDelegationTokenIdentifier
pub struct Token {
    pub owner: Arc<str>,
    pub renewer: Arc<str>,
    pub real_user: Arc<str>,
    pub issue_date: TimeMs,
    pub max_date: TimeMs,
    pub sequence_number: i32,
    pub master_key_id: i32,
    /// Current expiry.
    pub expiry: TimeMs,
}

/// A master key.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct MasterKey {
    /// When it expires.
    pub expiry: TimeMs,
    /// Encoded secret, if any.
    pub secret: Option<Arc<[u8]>>,
}

/// How the process issues tokens; soft: a new process begins with a new key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Issuing {
    /// When the current key was made.
    pub since: MonotonicMs,
    /// When expired tokens were last looked for.
    pub scanned: Option<MonotonicMs>,
}

/// Tokens and keys.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tokens {
    /// Last master key id.
    pub current_key: i32,
    /// Last token sequence number.
    pub sequence: i32,
    /// Keys by id.
    pub keys: BTreeMap<i32, MasterKey>,
    /// Tokens by sequence number.
    pub tokens: BTreeMap<i32, Token>,
    /// Once tokens are issued by this process.
    pub issuing: Option<Issuing>,
}
