//! Authentication as byte steps, so that the transport carries them without knowing what they mean.

/// What a server offers in answer to NEGOTIATE (`RpcSaslProto.SaslAuth`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    /// Hadoop's name: TOKEN, KERBEROS.
    pub method: &'static str,
    /// SASL's name: DIGEST-MD5, GSSAPI.
    pub mechanism: &'static str,
    /// Service part of the server's principal.
    pub protocol: String,
    /// Host part of it.
    pub server_id: String,
    /// First challenge, for mechanisms that begin with one.
    pub challenge: Option<Vec<u8>>,
}
