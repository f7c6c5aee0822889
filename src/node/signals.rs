//! The signals that end the NameNode.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for TERM, HUP and INT.
pub struct Signals {
    terminate: Signal,
    hang_up: Signal,
    interrupt: Signal,
}

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    number: u8,
    name: &'static str,
}

impl Received {
    /// The exit code of a Java process that such a signal ends.
    pub fn exit_code(self) -> u8 {
        128 + self.number
    }
}

impl Signals {
    /// From now on these signals do not end the process by themselves. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// The system does not let us.
    pub fn listen() -> std::io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next one and logs it.
    pub async fn next(&mut self) -> Received {
        let received = tokio::select! {
            _ = self.terminate.recv() => Received { number: 15, name: "SIGTERM" },
            _ = self.hang_up.recv() => Received { number: 1, name: "SIGHUP" },
            _ = self.interrupt.recv() => Received { number: 2, name: "SIGINT" },
        };
        tracing::error!("RECEIVED SIGNAL {}: {}", received.number, received.name);
        received
    }
}
