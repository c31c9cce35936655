//! The header block of a frame: names and values, packed with a dictionary that both ends know.
//!
//! One packer and one unpacker last as long as the connection: a block refers to those before it.

use bytes::{Buf, BufMut};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::Broken;

/// Names in lower case, with their values.
pub(in super::super) type Headers = Vec<(String, String)>;

/// The dictionary that SPDY/3 publishes: words that headers are likely to hold.
const DICTIONARY: &[u8; 1423] = include_bytes!("dictionary.bin");

/// More than any honest client sends; a small block can unpack into a very large one.
const MAX_UNPACKED: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Packer(Compress);

impl Packer {
    pub(super) fn new() -> Result<Self, Broken> {
        let mut compress = Compress::new(Compression::default(), true);
        compress.set_dictionary(DICTIONARY)?;
        Ok(Self(compress))
    }

    pub(super) fn pack(&mut self, headers: &[(String, String)]) -> Result<Vec<u8>, Broken> {
        let mut plain = Vec::new();
        plain.put_u32(length(headers.len()));
        for (name, value) in headers {
            for text in [name, value] {
                plain.put_u32(length(text.len()));
                plain.put_slice(text.as_bytes());
            }
        }
        let mut packed = Vec::with_capacity(plain.len() + 64);
        let mut rest = plain.as_slice();
        loop {
            let before = self.0.total_in();
            self.0.compress_vec(rest, &mut packed, FlushCompress::Sync)?;
            rest = rest.get(advance(before, self.0.total_in())..).unwrap_or_default();
            // Room to spare after everything was read: the flush is complete.
            if rest.is_empty() && packed.len() < packed.capacity() {
                return Ok(packed);
            }
            packed.reserve(256);
        }
    }
}

#[derive(Debug)]
pub(super) struct Unpacker(Decompress);

impl Unpacker {
    pub(super) fn new() -> Self {
        Self(Decompress::new(true))
    }

    pub(super) fn unpack(&mut self, packed: &[u8]) -> Result<Headers, Broken> {
        let mut plain = Vec::with_capacity(1024);
        let mut rest = packed;
        loop {
            let before = self.0.total_in();
            let outcome = self.0.decompress_vec(rest, &mut plain, FlushDecompress::Sync);
            rest = rest.get(advance(before, self.0.total_in())..).unwrap_or_default();
            match outcome {
                // Only the first block asks for it.
                Err(error) if error.needs_dictionary().is_some() => {
                    self.0.set_dictionary(DICTIONARY)?;
                }
                Err(error) => return Err(error.into()),
                Ok(Status::StreamEnd) => return Err(Broken::Headers("the packed stream ends")),
                Ok(_) if plain.len() == plain.capacity() => {
                    if plain.len() >= MAX_UNPACKED {
                        return Err(Broken::Headers("too many"));
                    }
                    plain.reserve(plain.len());
                }
                Ok(_) if rest.is_empty() => return read(&plain),
                Ok(_) => return Err(Broken::Headers("the block is cut short")),
            }
        }
    }
}

fn read(mut plain: &[u8]) -> Result<Headers, Broken> {
    let count = plain.try_get_u32().map_err(|_| Broken::Headers("no count"))?;
    let mut headers = Headers::new();
    for _ in 0..count {
        let (name, value) = (text(&mut plain)?, text(&mut plain)?);
        headers.push((name.to_ascii_lowercase(), value));
    }
    if plain.is_empty() { Ok(headers) } else { Err(Broken::Headers("more than announced")) }
}

fn text(plain: &mut &[u8]) -> Result<String, Broken> {
    let length = plain.try_get_u32().map_err(|_| Broken::Headers("no length"))?;
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let (text, rest) = plain.split_at_checked(length).ok_or(Broken::Headers("cut short"))?;
    *plain = rest;
    String::from_utf8(text.to_vec()).map_err(|_| Broken::Headers("not UTF-8"))
}

fn length(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

fn advance(before: u64, after: u64) -> usize {
    usize::try_from(after - before).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(value: &str) -> Headers {
        vec![("streamtype".into(), "data".into()), ("port".into(), value.into())]
    }

    #[test]
    fn blocks_come_out_as_they_went_in_one_after_another() {
        let (mut packer, mut unpacker) = (Packer::new().unwrap(), Unpacker::new());
        for value in ["80", "", "8080", &"x".repeat(30_000), "80"] {
            let packed = packer.pack(&headers(value)).unwrap();
            assert_eq!(unpacker.unpack(&packed).unwrap(), headers(value));
        }
        assert_eq!(unpacker.unpack(&packer.pack(&[]).unwrap()).unwrap(), Headers::new());
    }

    #[test]
    fn a_block_that_unpacks_into_very_much_is_refused() {
        let packed = Packer::new().unwrap().pack(&headers(&"x".repeat(1_000_000))).unwrap();
        assert!(packed.len() < 10_000);
        assert!(matches!(Unpacker::new().unpack(&packed), Err(Broken::Headers("too many"))));
    }

    #[test]
    fn a_block_that_lies_about_its_lengths_is_refused() {
        for plain in [&[][..], &[0, 0, 0, 1], &[0, 0, 0, 1, 255, 255, 255, 255, b'x']] {
            assert!(matches!(read(plain), Err(Broken::Headers(_))));
        }
        assert!(Unpacker::new().unpack(b"not packed at all").is_err());
    }
}
