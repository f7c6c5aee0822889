//! Authentication as byte steps, so that the transport carries them without knowing what they mean.

use std::fmt::Debug;
use vocab::AuthenticationMethod;

/// What a server offers in answer to a client that negotiates (`RpcSaslProto.SaslAuth`).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Offer {
    /// Hadoop's name: TOKEN, KERBEROS.
    pub method: String,
    /// SASL's name: DIGEST-MD5, GSSAPI.
    pub mechanism: String,
    /// Service part of the server's principal.
    pub protocol: String,
    /// Host part of it.
    pub server_id: String,
    /// First challenge, for mechanisms that begin with one.
    pub challenge: Option<Vec<u8>>,
}

/// What a server says to a client that negotiates.
#[derive(Default)]
pub struct Offers {
    /// What there is to choose from, best first.
    pub all: Vec<Offer>,
    /// The exchange that the first offer's challenge belongs to, if it has one.
    pub begun: Option<Box<dyn Exchange>>,
}

/// Why an exchange ends without proof; the text is what the client gets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The client's bytes prove nothing.
    Refused(String),
    /// There is no such token in force.
    BadToken(String),
    /// This name node does not answer for tokens in its present role.
    Standby(String),
}

/// What one step of an exchange leads to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// The client must answer these bytes.
    Challenge(Vec<u8>),
    /// The client has proved who it is.
    Proved {
        /// Who: a principal, or the owner of a token.
        principal: String,
        /// Who acts for it, where a token says so.
        real: Option<String>,
        /// How.
        method: AuthenticationMethod,
        /// Last bytes for the client, which it may need to trust the server.
        token: Option<Vec<u8>>,
    },
}

/// An exchange under way with one client.
pub trait Exchange: Send {
    /// Takes the client's bytes one step further. After an error or [`Step::Proved`] it is not called again.
    ///
    /// # Errors
    /// The client has not proved who it is.
    fn step(&mut self, token: &[u8]) -> Result<Step, Failure>;
}

/// The mechanisms of a server besides SIMPLE.
pub trait Mechanisms: Send + Sync + Debug {
    /// Hadoop's names of the methods, best first.
    fn methods(&self) -> Vec<String>;
    /// What to offer to a new client.
    fn offers(&self) -> Offers;
    /// Begins an exchange for a client that chose this method and mechanism; `None` if it is not offered.
    fn begin(&self, method: &str, mechanism: &str) -> Option<Box<dyn Exchange>>;
}
