//! Delegation tokens: issued, renewed, cancelled, and tended: master keys are replaced and expired tokens removed (Hadoop's `FSNamesystem` and
//! `AbstractDelegationTokenSecretManager`). Words and order of checks are those of the latter.

use crate::{Operation, Turn, View, Write};
use edit::Record;
use edit::record::Token as Stored;
use security::token::{self, Identifier, KEY_BYTES};
use state::tokens::{Issuing, Token};
use vocab::{Refusal, TimeMs};

/// Tokens removed in one hold.
const REMOVED_AT_ONCE: usize = 256;
/// How often expired tokens are looked for, in milliseconds (`DELEGATION_TOKEN_REMOVER_SCAN_INTERVAL`).
const SCAN_INTERVAL_MS: u64 = 3_600_000;

/// A token as its asker gets it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Issued {
    /// What it says about itself.
    pub identifier: Identifier,
    /// The same as bytes.
    pub bytes: Vec<u8>,
    /// What proves that this name node made it.
    pub password: [u8; 20],
}

fn stored(identifier: &Identifier) -> Stored<'_> {
    Stored {
        owner: identifier.owner.as_str().into(),
        renewer: identifier.renewer.as_str().into(),
        real_user: identifier.real_user.as_str().into(),
        issue_date: TimeMs(identifier.issue_date),
        max_date: TimeMs(identifier.max_date),
        sequence_number: identifier.sequence_number,
        master_key_id: identifier.master_key_id,
    }
}

fn identifier_of(token: &Token) -> Identifier {
    Identifier {
        owner: token.owner.to_string(),
        renewer: token.renewer.to_string(),
        real_user: token.real_user.to_string(),
        issue_date: token.issue_date.0,
        max_date: token.max_date.0,
        sequence_number: token.sequence_number,
        master_key_id: token.master_key_id,
    }
}

/// Milliseconds of a setting, as a signed distance.
fn span(milliseconds: u64) -> i64 {
    i64::try_from(milliseconds).unwrap_or(i64::MAX)
}

impl View<'_> {
    /// The token of just this identifier.
    fn token(&self, identifier: &Identifier) -> Option<&Token> {
        let found = self.state.tokens.tokens.get(&identifier.sequence_number)?;
        (identifier_of(found) == *identifier).then_some(found)
    }

    fn secret(&self, key: i32) -> Option<&[u8]> {
        self.state.tokens.keys.get(&key)?.secret.as_deref()
    }

    /// The password of a token in force (`retrievePassword`); `date` words times.
    ///
    /// # Errors
    /// `InvalidToken`: it is not known, or has expired.
    pub fn token_password(&self, identifier: &Identifier, date: fn(TimeMs) -> String) -> Result<[u8; 20], Refusal> {
        let real = &identifier.real_user;
        let unknown = || Refusal::InvalidToken(format!("Token for real user: {real}, can't be found in cache").into());
        let found = self.token(identifier).ok_or_else(unknown)?;
        let now = self.now.wall;
        if found.expiry < now {
            let (now, expiry) = (date(now), date(found.expiry));
            let text = format!("Token {real} has expired, current time: {now} expected renewal time: {expiry}");
            return Err(Refusal::InvalidToken(text.into()));
        }
        let key = self.secret(identifier.master_key_id).ok_or_else(unknown)?;
        Ok(token::password(&identifier.encode(), key))
    }
}

/// Makes a master key, which new tokens get from now on.
fn make_key(turn: &mut Turn<'_>, secret: [u8; KEY_BYTES]) {
    let view = turn.view();
    let id = view.state.tokens.current_key.wrapping_add(1);
    let life = span(view.settings.token_key_interval_ms).saturating_add(span(view.settings.token_lifetime_ms));
    let expiry = TimeMs(view.now.wall.0.saturating_add(life));
    let since = view.now.monotonic;
    turn.log(Record::UpdateMasterKey { id, expiry, key: Some(secret.to_vec().into()) });
    let tokens = &mut turn.soft().tokens;
    let scanned = tokens.issuing.as_ref().and_then(|issuing| issuing.scanned);
    tokens.issuing = Some(Issuing { since, scanned });
}

/// `getDelegationToken`: no token where none is to be used.
#[derive(Clone, Debug)]
pub struct GetDelegationToken {
    /// Short name of the user who may renew it.
    pub renewer: String,
    /// Random bytes, for the case that there is no key yet.
    pub secret: [u8; KEY_BYTES],
}

impl Write for GetDelegationToken {
    type Prepared = ();
    type Reply = Option<Issued>;
    const OPERATION: Operation = Operation::GetDelegationToken;

    fn prepare(&self, _: &View<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<Option<Issued>, Refusal> {
        turn.view().check_safe_mode(|| "Cannot issue delegation token".to_owned())?;
        if !turn.view().settings.tokens {
            return Ok(None);
        }
        if turn.view().state.tokens.issuing.is_none() {
            make_key(turn, self.secret);
        }
        let view = turn.view();
        let (tokens, settings, now) = (&view.state.tokens, view.settings, view.now.wall);
        let identifier = Identifier {
            owner: view.caller.user.to_string(),
            renewer: self.renewer.clone(),
            real_user: view.caller.real_user.as_deref().unwrap_or_default().to_owned(),
            issue_date: now.0,
            max_date: now.0.saturating_add(span(settings.token_lifetime_ms)),
            sequence_number: tokens.sequence.wrapping_add(1),
            master_key_id: tokens.current_key,
        };
        let key = view.secret(tokens.current_key).ok_or_else(|| Refusal::io("There is no key for tokens"))?;
        let bytes = identifier.encode();
        let password = token::password(&bytes, key);
        let expiry = TimeMs(now.0.saturating_add(span(settings.token_renewal_ms)));
        turn.log(Record::GetDelegationToken { token: stored(&identifier), expiry });
        Ok(Some(Issued { identifier, bytes, password }))
    }
}

/// `renewDelegationToken`: answers until when the token is in force now.
#[derive(Clone, Debug)]
pub struct RenewDelegationToken {
    /// The token's identifier, and its bytes as they came.
    pub identifier: (Identifier, Vec<u8>),
    /// The identifier in refusals.
    pub shown: String,
    /// The token's password.
    pub password: Vec<u8>,
    /// Words a time.
    pub date: fn(TimeMs) -> String,
}

impl Write for RenewDelegationToken {
    type Prepared = ();
    type Reply = TimeMs;
    const OPERATION: Operation = Operation::RenewDelegationToken;

    fn prepare(&self, _: &View<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<TimeMs, Refusal> {
        let view = turn.view();
        view.check_safe_mode(|| "Cannot renew delegation token".to_owned())?;
        let (now, renewer, shown) = (view.now.wall, &view.caller.user, &self.shown);
        let (identifier, bytes) = &self.identifier;
        let invalid = |text: String| Refusal::InvalidToken(text.into());
        let denied = |text: String| Refusal::AccessControl(text.into());
        if identifier.max_date < now.0 {
            let (max, now) = ((self.date)(TimeMs(identifier.max_date)), (self.date)(now));
            return Err(invalid(format!(
                "{renewer} tried to renew an expired token {shown} max expiration date: {max} currentTime: {now}"
            )));
        }
        if identifier.renewer.is_empty() {
            return Err(denied(format!("{renewer} tried to renew a token {shown} without a renewer")));
        }
        if identifier.renewer != **renewer {
            let other = &identifier.renewer;
            return Err(denied(format!("{renewer} tries to renew a token {shown} with non-matching renewer {other}")));
        }
        let Some(key) = view.secret(identifier.master_key_id) else {
            let Identifier { master_key_id: key, sequence_number: sequence, .. } = identifier;
            return Err(invalid(format!(
                "Unable to find master key for keyId={key} from cache. Failed to renew an unexpired token {shown} with sequenceNumber={sequence}"
            )));
        };
        if !token::is_password(bytes, key, &self.password) {
            return Err(denied(format!("{renewer} is trying to renew a token {shown} with wrong password")));
        }
        if view.token(identifier).is_none() {
            return Err(invalid(format!("Renewal request for unknown token {shown}")));
        }
        let expiry = TimeMs(identifier.max_date.min(now.0.saturating_add(span(view.settings.token_renewal_ms))));
        turn.log(Record::RenewDelegationToken { token: stored(identifier), expiry });
        Ok(expiry)
    }
}

/// `cancelDelegationToken`: by its owner or its renewer. The password is not looked at, as in Hadoop.
#[derive(Clone, Debug)]
pub struct CancelDelegationToken {
    /// The token's identifier.
    pub identifier: Identifier,
    /// The identifier in refusals.
    pub shown: String,
}

impl Write for CancelDelegationToken {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::CancelDelegationToken;

    fn prepare(&self, _: &View<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        let view = turn.view();
        view.check_safe_mode(|| "Cannot cancel delegation token".to_owned())?;
        let (identifier, shown, canceller) = (&self.identifier, &self.shown, &*view.caller.user);
        if identifier.owner.is_empty() {
            return Err(Refusal::InvalidToken(format!("Token with no owner {shown}").into()));
        }
        if canceller != identifier.owner && (identifier.renewer.is_empty() || canceller != identifier.renewer) {
            let text = format!("{canceller} is not authorized to cancel the token {shown}");
            return Err(Refusal::AccessControl(text.into()));
        }
        if view.token(identifier).is_none() {
            return Err(Refusal::InvalidToken(format!("Token not found {shown}").into()));
        }
        turn.log(Record::CancelDelegationToken { token: stored(identifier) });
        Ok(())
    }
}

/// Makes the first key of this process and a new one in place of each that is old, and removes tokens that were not renewed in time. Does
/// nothing in safe mode, and where no tokens are to be used. Whether there is more to remove.
///
/// Quirk: expired_master_keys_stay: a key that has expired is of no use to anybody but is kept; Hadoop forgets it without a record in the log,
/// so that its image and its log disagree
pub fn tend_tokens(turn: &mut Turn<'_>, secret: [u8; KEY_BYTES]) -> bool {
    let view = turn.view();
    if !view.settings.tokens || view.state.blocks.safe_mode.is_on() {
        return false;
    }
    let now = view.now.monotonic.0;
    let is_past = |since: u64, interval: u64| since.saturating_add(interval) < now;
    let issuing = view.state.tokens.issuing.clone();
    if issuing.as_ref().is_none_or(|issuing| is_past(issuing.since.0, view.settings.token_key_interval_ms)) {
        make_key(turn, secret);
    }
    let scanned = issuing.and_then(|issuing| issuing.scanned);
    if scanned.is_some_and(|scanned| !is_past(scanned.0, SCAN_INTERVAL_MS)) {
        return false;
    }
    let view = turn.view();
    let expired = |token: &&Token| token.expiry < view.now.wall;
    let gone: Vec<Identifier> =
        view.state.tokens.tokens.values().filter(expired).take(REMOVED_AT_ONCE).map(identifier_of).collect();
    let at = view.now.monotonic;
    for identifier in &gone {
        turn.log(Record::CancelDelegationToken { token: stored(identifier) });
    }
    let more = gone.len() == REMOVED_AT_ONCE;
    if let Some(issuing) = turn.soft().tokens.issuing.as_mut().filter(|_| !more) {
        issuing.scanned = Some(at);
    }
    more
}
