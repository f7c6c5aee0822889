//! Answers that may not leave yet: encoded already, in the order of their calls, each with the mark it waits for.

use bytes::BytesMut;
use std::collections::VecDeque;

/// Held answers of one connection. Marks never fall, so a mark that is reached frees a prefix.
#[derive(Default)]
pub(crate) struct Held {
    bytes: BytesMut,
    /// Mark and length of each answer.
    answers: VecDeque<(u64, usize)>,
}

impl Held {
    /// Number of answers.
    pub(crate) fn len(&self) -> usize {
        self.answers.len()
    }
    /// The mark of the first answer.
    pub(crate) fn mark(&self) -> Option<u64> {
        self.answers.front().map(|(mark, _)| *mark)
    }
    /// Adds the answer that `write` appends.
    pub(crate) fn push(&mut self, mark: u64, write: impl FnOnce(&mut BytesMut)) {
        debug_assert!(self.answers.back().is_none_or(|(last, _)| *last <= mark));
        let before = self.bytes.len();
        write(&mut self.bytes);
        self.answers.push_back((mark, self.bytes.len() - before));
    }
    /// Appends to `out` the answers whose mark is reached; returns their number.
    pub(crate) fn release(&mut self, reached: u64, out: &mut BytesMut) -> usize {
        let free = self.answers.iter().take_while(|(mark, _)| *mark <= reached);
        let (count, length) = free.fold((0, 0), |(count, sum), (_, length)| (count + 1, sum + length));
        if count == self.answers.len() && out.is_empty() {
            std::mem::swap(&mut self.bytes, out);
        } else {
            out.extend_from_slice(&self.bytes.split_to(length));
        }
        self.answers.drain(..count);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BufMut;

    #[test]
    fn only_what_is_reached_leaves_and_in_order() {
        let (mut held, mut out) = (Held::default(), BytesMut::new());
        for (mark, answer) in [(1, "a"), (1, "bb"), (3, "c"), (4, "d")] {
            held.push(mark, |bytes| bytes.put_slice(answer.as_bytes()));
        }
        assert_eq!((held.release(0, &mut out), held.mark()), (0, Some(1)));
        assert_eq!((held.release(2, &mut out), held.mark()), (2, Some(3)));
        assert_eq!(out[..], *b"abb");
        assert_eq!((held.release(9, &mut out), held.mark(), held.len()), (2, None, 0));
        assert_eq!(out[..], *b"abbcd");
        out.clear();
        held.push(10, |bytes| bytes.put_slice(b"e"));
        assert_eq!(held.release(10, &mut out), 1);
        assert_eq!(out[..], *b"e");
    }
}
