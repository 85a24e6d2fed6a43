//! Options that several commands share.

/// Methods for fields of the same names, of the command or of one in it (`options!(put: offset)`).
macro_rules! options {
    (@ offset $($in:ident)?) => {
        /// The offset in the list entry of the target, 0 by default. Entries that are managed
        /// locally have their own offset.
        pub const fn offset(mut self, offset: u64) -> Self {
            self.$($in.)?offset = offset;
            self
        }
    };
    (@ match_bits $($in:ident)?) => {
        /// The bits that select a list entry of a matching PtlTE.
        pub const fn match_bits(mut self, bits: u64) -> Self {
            self.$($in.)?match_bits = bits;
            self
        }
    };
    (@ header_data $($in:ident)?) => {
        /// Data for the event at the target.
        pub const fn header_data(mut self, data: u64) -> Self {
            self.$($in.)?header_data = data;
            self
        }
    };
    (@ restricted) => {
        /// Without matching, order or an event at the target. The NIC may send it along more than
        /// one path. Match bits and header data are not sent.
        pub const fn restricted(mut self) -> Self {
            self.flags = self.flags.union(cxi_hw::DmaFlags::RESTRICTED);
            self
        }
    };
    (@ report $($in:ident)?) => {
        /// Sets the way in which its end is reported.
        pub const fn report(mut self, report: $crate::Report) -> Self {
            self.$($in.)?report = report;
            self
        }
    };
    (@ operands) => {
        /// For [`AtomicOp::CSWAP`](crate::AtomicOp::CSWAP): what the value at the target is compared
        /// with, on the left.
        pub fn compare(mut self, how: crate::CompareOp, expected: impl Into<crate::Operand>) -> Self {
            self.second = Some((how, expected.into()));
            self
        }

        /// For [`AtomicOp::AXOR`](crate::AtomicOp::AXOR): the bits that are stored.
        pub fn mask(self, mask: impl Into<crate::Operand>) -> Self {
            self.compare(crate::CompareOp::EQ, mask)
        }

        /// Copies the previous value to the start of a slice.
        pub const fn fetch(mut self, into: crate::Slice<'a>) -> Self {
            self.fetch = Some(into);
            self
        }
    };
    (@ selection) => {
        /// Only messages with these match bits. All bits count, unless
        /// [`ignore`](Self::ignore) follows.
        pub const fn match_bits(mut self, bits: u64) -> Self {
            self.command.match_bits = bits;
            self.command.ignore_bits = 0;
            self
        }

        /// Ignores the match bits that are set in `bits`.
        pub const fn ignore(mut self, bits: u64) -> Self {
            self.command.ignore_bits = bits;
            self
        }

        /// Only messages of one process.
        pub const fn from(mut self, initiator: $crate::Address) -> Self {
            self.from = Some(initiator);
            self
        }
    };
    ($in:ident: $($option:ident)+) => {
        $($crate::options::options!(@ $option $in);)+
    };
    ($($option:ident)+) => {
        $($crate::options::options!(@ $option);)+
    };
}
pub(crate) use options;
