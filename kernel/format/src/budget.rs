//! Amounts and budgets: ten counted or measured dimensions.

use core::fmt;

use crate::cbor::{DecodeError, DecodeFault, Decoder, Encoder};
use crate::field::Field;

/// One dimension of a budget. The numbers are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dimension {
    /// Calls, refused ones of a bound token included.
    Calls,
    /// Tokens of a language model, posted by the host after the fact.
    LlmTokens,
    /// Processor time in microseconds, measured.
    CpuUs,
    /// Wall-clock time in microseconds, measured.
    WallUs,
    /// Bytes written to files.
    DiskWriteBytes,
    /// Files and folders created.
    DiskFiles,
    /// Bytes sent to the network.
    EgressBytes,
    /// Bytes received from the network.
    IngressBytes,
    /// Millionths of a credit, posted by the host or by a tool's price.
    CreditsMicro,
    /// Calls running at one time: a gauge, freed at boot.
    Concurrent,
}

impl Dimension {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 10] = [
        Self::Calls,
        Self::LlmTokens,
        Self::CpuUs,
        Self::WallUs,
        Self::DiskWriteBytes,
        Self::DiskFiles,
        Self::EgressBytes,
        Self::IngressBytes,
        Self::CreditsMicro,
        Self::Concurrent,
    ];

    /// The name in documents and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::LlmTokens => "llm_tokens",
            Self::CpuUs => "cpu_us",
            Self::WallUs => "wall_us",
            Self::DiskWriteBytes => "disk_write_bytes",
            Self::DiskFiles => "disk_files",
            Self::EgressBytes => "egress_bytes",
            Self::IngressBytes => "ingress_bytes",
            Self::CreditsMicro => "credits_micro",
            Self::Concurrent => "concurrent",
        }
    }

    /// Its place among all of them.
    const fn place(self) -> usize {
        match self {
            Self::Calls => 0,
            Self::LlmTokens => 1,
            Self::CpuUs => 2,
            Self::WallUs => 3,
            Self::DiskWriteBytes => 4,
            Self::DiskFiles => 5,
            Self::EgressBytes => 6,
            Self::IngressBytes => 7,
            Self::CreditsMicro => 8,
            Self::Concurrent => 9,
        }
    }

    /// The dimension of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dimension| dimension.name() == name)
    }

    /// True if a run counts it unit by unit through its permit.
    #[must_use]
    pub const fn is_metered(self) -> bool {
        matches!(
            self,
            Self::DiskWriteBytes
                | Self::DiskFiles
                | Self::EgressBytes
                | Self::IngressBytes
                | Self::CreditsMicro
                | Self::LlmTokens
        )
    }

    /// True if it can only be measured after the fact, because a thread can't be stopped.
    #[must_use]
    pub const fn is_measured(self) -> bool {
        matches!(self, Self::CpuUs | Self::WallUs)
    }
}

impl Field for Dimension {
    const SHAPE: &'static str = "text Dimension";

    fn put(&self, encoder: &mut Encoder) {
        encoder.text(self.name());
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let fault = decoder.fault(DecodeFault::Value);
        Self::from_name(decoder.text()?).ok_or(fault)
    }
}

/// An amount in each of the ten dimensions.
#[must_use]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts([u64; 10]);

impl Amounts {
    /// Nothing.
    pub const ZERO: Self = Self([0; 10]);

    /// These amounts, with `amount` in `dimension`.
    pub fn with(mut self, dimension: Dimension, amount: u64) -> Self {
        self.set(dimension, amount);
        self
    }

    /// The amount in `dimension`.
    pub fn get(&self, dimension: Dimension) -> u64 {
        self.0.get(dimension.place()).copied().unwrap_or(0)
    }

    /// Each dimension with its amount.
    pub fn iter(&self) -> impl Iterator<Item = (Dimension, u64)> {
        Dimension::ALL.into_iter().zip(self.0)
    }

    /// True if every amount is at most that of `other`.
    #[must_use]
    pub fn leq(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a <= b)
    }

    /// The smaller amount in each dimension.
    pub fn meet(&self, other: &Self) -> Self {
        self.combine(other, u64::min)
    }

    /// The sum, at most the largest number there is.
    pub fn plus(&self, other: &Self) -> Self {
        self.combine(other, u64::saturating_add)
    }

    /// The difference, at least 0.
    pub fn minus(&self, other: &Self) -> Self {
        self.combine(other, u64::saturating_sub)
    }

    /// Puts an amount in the place of what a dimension had.
    pub fn set(&mut self, dimension: Dimension, amount: u64) {
        if let Some(slot) = self.0.get_mut(dimension.place()) {
            *slot = amount;
        }
    }

    fn combine(&self, other: &Self, f: impl Fn(u64, u64) -> u64) -> Self {
        let mut result = *self;
        for (a, b) in result.0.iter_mut().zip(other.0) {
            *a = f(*a, b);
        }
        result
    }
}

impl fmt::Display for Amounts {
    /// The dimensions that are not zero, as `calls=1 wall_us=20`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (dimension, amount) in self.iter().filter(|(_, amount)| *amount > 0) {
            write!(f, "{separator}{}={amount}", dimension.name())?;
            separator = " ";
        }
        Ok(())
    }
}

impl Field for Amounts {
    const SHAPE: &'static str = "array of 10 uint";

    fn put(&self, encoder: &mut Encoder) {
        encoder.array(self.0.len());
        self.0.iter().for_each(|amount| encoder.uint(*amount));
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let mut amounts = Self::ZERO;
        if decoder.array()? != 10 {
            return Err(decoder.fault(DecodeFault::Value));
        }
        for slot in &mut amounts.0 {
            *slot = decoder.uint()?;
        }
        Ok(amounts)
    }
}

/// A token's limits: the amounts that it may use in all, in each dimension. A dimension at 0
/// permits nothing of it.
#[must_use]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget(Amounts);

impl Budget {
    /// A day's work of one agent with files: 1,000 calls, 10 minutes of processor, an hour of
    /// running, 256 MiB in 1,000 files, 16 calls at once, a million model tokens, 64 MiB each
    /// way on the network, one credit.
    pub fn standard() -> Self {
        Self::none()
            .with(Dimension::Calls, 1_000)
            .with(Dimension::LlmTokens, 1_000_000)
            .with(Dimension::CpuUs, 600_000_000)
            .with(Dimension::WallUs, 3_600_000_000)
            .with(Dimension::DiskWriteBytes, 256 << 20)
            .with(Dimension::DiskFiles, 1_000)
            .with(Dimension::EgressBytes, 64 << 20)
            .with(Dimension::IngressBytes, 64 << 20)
            .with(Dimension::CreditsMicro, 1_000_000)
            .with(Dimension::Concurrent, 16)
    }

    /// A budget that an agent at work with a person never uses up in a working day: 100,000 calls,
    /// two days of waiting for them, six hours of processor time, 20,000 files and 4 GiB written, 4
    /// GiB sent and as much received, the rest as [`standard`](Self::standard).
    pub fn working_day() -> Self {
        Self::standard()
            .with(Dimension::Calls, 100_000)
            .with(Dimension::CpuUs, 6 * 3_600_000_000)
            .with(Dimension::WallUs, 48 * 3_600_000_000)
            .with(Dimension::DiskWriteBytes, 4 << 30)
            .with(Dimension::DiskFiles, 20_000)
            .with(Dimension::EgressBytes, 4 << 30)
            .with(Dimension::IngressBytes, 4 << 30)
    }

    /// A budget of zero in every dimension.
    pub const fn none() -> Self {
        Self(Amounts::ZERO)
    }

    /// This budget, with the limit of one dimension set.
    pub fn with(self, dimension: Dimension, limit: u64) -> Self {
        Self(self.0.with(dimension, limit))
    }

    /// The limits.
    pub const fn amounts(&self) -> &Amounts {
        &self.0
    }

    /// True if every limit is at most that of `other`.
    #[must_use]
    pub fn leq(&self, other: &Self) -> bool {
        self.0.leq(&other.0)
    }

    /// The smaller limit in each dimension.
    pub fn meet(&self, other: &Self) -> Self {
        Self(self.0.meet(&other.0))
    }
}

impl Field for Budget {
    const SHAPE: &'static str = Amounts::SHAPE;

    fn put(&self, encoder: &mut Encoder) {
        self.0.put(encoder);
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Amounts::take(decoder).map(Self)
    }
}
