//! Who may ask what in the present high-availability state.

use ops::table::Category;
use std::sync::atomic::{AtomicU8, Ordering};
use vocab::Refusal;

/// State of this NameNode among its peers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum HaState {
    /// Loading, or between roles: everything but unchecked calls is refused.
    Initializing = 0,
    /// Reads and writes.
    Active = 1,
    /// Tails the journal of the active.
    Standby = 2,
    /// Ends.
    Stopping = 3,
}

impl HaState {
    /// The name in Hadoop's messages and beans.
    pub fn name(self) -> &'static str {
        ["initializing", "active", "standby", "stopping"][self as usize]
    }
}

/// The gate in front of all operations.
#[derive(Debug)]
pub struct Gate(AtomicU8);

impl Gate {
    /// A gate in the given state.
    pub fn new(state: HaState) -> Gate {
        Gate(AtomicU8::new(state as u8))
    }

    /// The present state.
    pub fn state(&self) -> HaState {
        match self.0.load(Ordering::Acquire) {
            1 => HaState::Active,
            2 => HaState::Standby,
            3 => HaState::Stopping,
            _ => HaState::Initializing,
        }
    }

    /// Changes the state.
    pub fn set(&self, state: HaState) {
        self.0.store(state as u8, Ordering::Release);
    }

    /// Whether an operation of this category may pass.
    ///
    /// # Errors
    /// [`Refusal::Standby`] with Hadoop's text in any state but active, except for unchecked operations.
    pub fn pass(&self, category: Category) -> Result<(), Refusal> {
        let state = self.state();
        if state == HaState::Active || category == Category::Unchecked {
            return Ok(());
        }
        let (category, state) = (name(category), state.name());
        let text = format!(
            "Operation category {category} is not supported in state {state}. Visit https://s.apache.org/sbnn-error"
        );
        Err(Refusal::Standby(text.into()))
    }
}

/// The category in Hadoop's messages.
fn name(category: Category) -> &'static str {
    match category {
        Category::Read => "READ",
        Category::Write => "WRITE",
        Category::Checkpoint => "CHECKPOINT",
        Category::Journal => "JOURNAL",
        Category::Unchecked => "UNCHECKED",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_gate_names_category_and_state() {
        let gate = Gate::new(HaState::Standby);
        let Err(Refusal::Standby(text)) = gate.pass(Category::Write) else { panic!("passed") };
        assert_eq!(
            &*text,
            "Operation category WRITE is not supported in state standby. Visit https://s.apache.org/sbnn-error"
        );
        assert_eq!(gate.pass(Category::Unchecked), Ok(()));
        gate.set(HaState::Active);
        assert_eq!(gate.pass(Category::Write), Ok(()));
    }
}
