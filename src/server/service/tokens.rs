//! Delegation tokens as a proof of who calls, and their upkeep.

use super::Shared;
use engine::{Engine, HaState};
use observe::RemoteException;
use ops::Operation;
use ops::write::tokens::tend_tokens;
use os::Os;
use security::digest::{DigestExchange, Holder, MECHANISM, REALM, TokenSource};
use security::sasl::{Exchange, Failure, Mechanisms, Offer, Offers};
use security::token::{Identifier, KEY_BYTES};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use vocab::Refusal;
use vocab::time::TimeMs;

/// Hadoop's name of the method.
const METHOD: &str = "TOKEN";
/// Random bytes of a nonce, as many as Java's.
const NONCE_BYTES: usize = 30;
/// How often keys and tokens are looked after at the most.
const PAUSE: Duration = Duration::from_secs(5);

/// Random bytes for a key that may have to be made.
pub(super) fn fresh_secret(shared: &Shared) -> [u8; KEY_BYTES] {
    random_bytes(&shared.engine.checkpoints().os)
}

fn random_bytes<const N: usize>(os: &Os) -> [u8; N] {
    let mut bytes = [0; N];
    os.random.fill(&mut bytes);
    bytes
}

/// A time in the local zone, as Hadoop words it in refusals of tokens.
pub(super) fn local_date(time: TimeMs) -> String {
    let zoned = jiff::Timestamp::from_millisecond(time.0).map(|stamp| stamp.to_zoned(jiff::tz::TimeZone::system()));
    zoned.map_or_else(|_| time.0.to_string(), |zoned| zoned.strftime("%Y-%m-%d %H:%M:%S,%3f%z").to_string())
}

/// The mechanism of tokens: DIGEST-MD5 with what the state knows of them.
#[derive(Clone)]
pub struct TokenMechanism {
    engine: Arc<Engine>,
}

impl TokenMechanism {
    /// For the tokens of a name node.
    pub fn new(engine: Arc<Engine>) -> TokenMechanism {
        TokenMechanism { engine }
    }
    fn exchange(&self) -> DigestExchange<TokenMechanism> {
        DigestExchange::new(self.clone(), &random_bytes::<NONCE_BYTES>(&self.engine.checkpoints().os))
    }
}

impl fmt::Debug for TokenMechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenMechanism")
    }
}

impl TokenSource for TokenMechanism {
    fn holder(&self, identifier: &[u8]) -> Result<Holder, Failure> {
        let unreadable = |_| Failure::BadToken("Can't de-serialize tokenIdentifier".to_owned());
        let identifier = Identifier::decode(identifier).map_err(unreadable)?;
        let failure = |refusal: Refusal| match refusal {
            Refusal::Standby(text) => Failure::Standby(text.to_string()),
            other => Failure::BadToken(RemoteException::from(other).message),
        };
        // as any read: a name node that may be behind cannot tell
        self.engine.pass(Operation::GetFileInfo).map_err(failure)?;
        let nobody = super::own_caller(&self.engine);
        let found = self.engine.view("token", &nobody, |view| view.token_password(&identifier, local_date));
        let password = found.map_err(failure)?.to_vec();
        let Identifier { owner, real_user, .. } = identifier;
        let real = Some(real_user).filter(|real| !real.is_empty() && *real != owner);
        Ok(Holder { owner, real, password })
    }
}

impl Mechanisms for TokenMechanism {
    fn methods(&self) -> Vec<String> {
        vec![METHOD.to_owned()]
    }
    fn offers(&self) -> Offers {
        let exchange = self.exchange();
        let offer = Offer {
            method: METHOD.to_owned(),
            mechanism: MECHANISM.to_owned(),
            protocol: String::new(),
            server_id: REALM.to_owned(),
            challenge: Some(exchange.challenge()),
        };
        Offers { all: vec![offer], begun: Some(Box::new(exchange)) }
    }
    fn begin(&self, method: &str, mechanism: &str) -> Option<Box<dyn Exchange>> {
        (method == METHOD && mechanism == MECHANISM).then(|| Box::new(self.exchange()) as Box<dyn Exchange>)
    }
}

/// Looks after keys and tokens for ever.
pub async fn tend(engine: Arc<Engine>) {
    let caller = super::own_caller(&engine);
    let interval = Duration::from_millis(engine.settings().token_key_interval_ms.max(1));
    let mut pause = tokio::time::interval(interval.min(PAUSE));
    loop {
        pause.tick().await;
        while engine.gate().state() == HaState::Active {
            let secret = random_bytes(&engine.checkpoints().os);
            if !engine.turn("tendTokens", &caller, |turn| tend_tokens(turn, secret)).answer {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
}
