//! A second line of defence. A run ends by its deadline and by a signal because it waits for both; a bug that computes for
//! ever waits for nothing. A thread of its own then ends the program.

use std::{thread, time::Duration};

use crate::output;

/// Ends the program some time after a signal that nobody obeyed.
pub(crate) fn over_signals() {
    thread::spawn(|| {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build() else {
            return;
        };
        runtime.block_on(async {
            crate::interrupted().await;
            tokio::time::sleep(GRACE).await;
            std::process::exit(130);
        });
    });
}

/// Ends the program some time after a run should have ended.
pub(crate) fn over_time(most: Duration) {
    thread::spawn(move || {
        thread::sleep(most.saturating_add(GRACE));
        output::complain("the run did not end by its deadline (--max-time); please report this server");
        std::process::exit(3);
    });
}

/// Longer than the orderly end of a child.
const GRACE: Duration = Duration::from_secs(5);
