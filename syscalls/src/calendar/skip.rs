//! Why something is not among what was found.

/// Why an event or a file was left out. An ambiguous part is never guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Skip {
    /// A file is larger than may be read, or than what is left of the call's bytes.
    TooLarge,
    /// A file could not be opened or read.
    Unreadable,
    /// A file is no UTF-8.
    NotText,
    /// A name is no text: no call could say it.
    Name,
    /// A file holds no calendar.
    NoCalendar,
    /// The components of a file do not nest, one has no name or an event is in no calendar, or a
    /// line of an event is none.
    Malformed,
    /// Components nest too deep.
    TooDeep,
    /// More files, folders or events than a call looks at.
    TooMany,
    /// An event has no name, or one that is too long.
    Uid,
    /// A date or time that is none, or that is missing, or of another kind than its event's.
    Date,
    /// A time zone that is not known.
    Zone,
    /// A duration that is none, or too long.
    Duration,
    /// It ends before it starts.
    Backwards,
    /// A part that may stand once stands there again.
    Twice,
    /// A recurrence rule that is none.
    Rule,
    /// A part of a rule, or a kind of recurrence, that is not known here.
    Unsupported,
    /// More often than hourly.
    Frequency,
    /// It takes more steps than an event, or a call, may.
    Steps,
}

impl Skip {
    /// The name in results.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::TooLarge => "too_large",
            Self::Unreadable => "unreadable",
            Self::NotText => "not_text",
            Self::Name => "bad_name",
            Self::NoCalendar => "no_calendar",
            Self::Malformed => "malformed",
            Self::TooDeep => "too_deep",
            Self::TooMany => "too_many",
            Self::Uid => "bad_uid",
            Self::Date => "bad_date",
            Self::Zone => "unknown_zone",
            Self::Duration => "bad_duration",
            Self::Backwards => "ends_before_it_starts",
            Self::Twice => "said_twice",
            Self::Rule => "bad_rule",
            Self::Unsupported => "unsupported",
            Self::Frequency => "too_frequent",
            Self::Steps => "too_much_work",
        }
    }
}

/// Steps that one event may take, and all of a call together. A step is a day or a time that is
/// looked at, a value that is read, a zone that is asked: well below a microsecond, optimised. So a
/// call stays within the second of processor time that is set aside for it.
const EVENT_STEPS_MAX: u32 = 250_000;
const CALL_STEPS_MAX: u32 = 1_000_000;

/// The rest of the work that a call may do. It is counted, never timed: the same files have the
/// same answer on every machine.
#[derive(Debug)]
pub(super) struct Steps {
    event: u32,
    call: u32,
}

impl Steps {
    pub(super) const fn new() -> Self {
        Self { event: EVENT_STEPS_MAX, call: CALL_STEPS_MAX }
    }

    /// Begins with another event.
    pub(super) const fn next_event(&mut self) {
        self.event = EVENT_STEPS_MAX;
    }

    /// Takes one, before it is made.
    pub(super) fn take(&mut self) -> Result<(), Skip> {
        let event = self.event.checked_sub(1).ok_or(Skip::Steps)?;
        self.call = self.call.checked_sub(1).ok_or(Skip::Steps)?;
        self.event = event;
        Ok(())
    }

    /// True if the call has none left.
    pub(super) const fn are_over(&self) -> bool {
        self.call == 0
    }
}
