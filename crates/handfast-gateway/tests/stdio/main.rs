//! The server behind as a child process: whose child it is, who hears what it says, and when it ends.

mod lab;

mod life;
mod log;
mod sessions;
mod singles;
