//! setSafeMode. Soft: it is not journalled.

use crate::{Operation, Turn, View, Write};
use vocab::Refusal;

/// What to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SafeModeAction {
    /// Only tell.
    Get,
    /// Enter.
    Enter,
    /// Leave, unless replicas from the future would be lost.
    Leave,
    /// Leave in any case.
    ForceExit,
}

/// setSafeMode: answers whether safe mode is on afterwards. Changes need a superuser.
#[derive(Clone, Copy, Debug)]
pub struct SetSafeMode {
    /// What to do.
    pub action: SafeModeAction,
}

impl Write for SetSafeMode {
    type Prepared = ();
    type Reply = bool;
    const OPERATION: Operation = Operation::SetSafeMode;

    fn prepare(&self, view: &View<'_>) -> Result<(), Refusal> {
        if self.action == SafeModeAction::Get { Ok(()) } else { view.check_superuser() }
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<bool, Refusal> {
        let blocks = &mut turn.soft().blocks;
        match self.action {
            SafeModeAction::Get => {}
            SafeModeAction::Enter => blocks.safe_mode.enter_manual(),
            SafeModeAction::Leave => {
                blocks.leave_safe_mode(false);
            }
            SafeModeAction::ForceExit => {
                blocks.leave_safe_mode(true);
            }
        }
        Ok(blocks.safe_mode.is_on())
    }
}
