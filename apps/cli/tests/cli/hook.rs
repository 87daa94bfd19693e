//! `syscap hook`: what clients send, what they are answered, and what stands on record.

mod asks;
mod claude;
mod gemini;
mod hostile;
mod servers;
mod settings;
mod shell;
mod told;
mod unasked;
mod unlisted;
mod world;
