//! Protobuf messages of the built-in kinds, from their published definitions: what a Go client
//! could send, with values that mean something somewhere.

use std::io::Read as _;
use std::sync::OnceLock;

use homeostat_apiserver::kinds::Kind;
use prost_reflect::prost::Message as _;
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind as Type, MapKey, MessageDescriptor, Value,
};

use crate::dice::Dice;
use crate::words;

const DEFINITIONS: &[u8] = include_bytes!("../../data/proto.binpb.gz");

fn pool() -> &'static DescriptorPool {
    static POOL: OnceLock<DescriptorPool> = OnceLock::new();
    POOL.get_or_init(|| {
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(DEFINITIONS).read_to_end(&mut bytes).unwrap();
        DescriptorPool::decode(bytes.as_slice()).unwrap()
    })
}

/// A message of that kind; `None` where there is no definition, as of custom resources.
pub(crate) fn of(dice: &Dice, kind: &Kind, name: &str) -> Option<Vec<u8>> {
    let named = &kind.schema.root().node().name;
    let package = named.strip_prefix("io.k8s.")?.replace('-', "_");
    let descriptor = pool().get_message_by_name(&format!("k8s.io.{package}"))?;
    let mut message = fill(dice, &descriptor, 0);
    let mut metadata = message.get_field_by_name("metadata")?.into_owned();
    metadata.as_message_mut()?.set_field_by_name("name", Value::String(name.to_owned()));
    message.set_field_by_name("metadata", metadata);
    Some(message.encode_to_vec())
}

fn fill(dice: &Dice, descriptor: &MessageDescriptor, depth: usize) -> DynamicMessage {
    let mut message = DynamicMessage::new(descriptor.clone());
    let likely = [70, 30, 18, 12, 8, 5].get(depth).copied().unwrap_or(2);
    for field in descriptor.fields() {
        if depth > 12 || !dice.chance(likely) {
            continue;
        }
        let one = || value(dice, &field.kind(), field.name(), depth);
        let made = if field.is_map() {
            map(dice, &field, depth)
        } else if field.is_list() {
            Value::List((0..dice.below(4)).map(|_| one()).collect())
        } else {
            one()
        };
        message.set_field(&field, made);
    }
    message
}

fn map(dice: &Dice, field: &FieldDescriptor, depth: usize) -> Value {
    let Type::Message(entry) = field.kind() else { return Value::Map(Default::default()) };
    let of = entry.map_entry_value_field().kind();
    let one = |_| {
        let key = MapKey::String((*dice.pick(words::of("key"))).to_owned());
        (key, value(dice, &of, field.name(), depth + 1))
    };
    Value::Map((0..dice.below(3)).map(one).collect())
}

fn value(dice: &Dice, of: &Type, field: &str, depth: usize) -> Value {
    let number = *dice.pick(&[0, 1, -1, 2, 80, 70_000, i64::MAX, i64::MIN]);
    let text = || *dice.pick(words::of(field));
    // The number of bits is the message's to choose.
    let (short, long) = (i32::try_from(number).unwrap_or(i32::MIN), number.unsigned_abs());
    match of {
        Type::Message(below) => Value::Message(fill(dice, below, depth + 1)),
        Type::String => Value::String(text().to_owned()),
        Type::Bytes => Value::Bytes(text().into()),
        Type::Bool => Value::Bool(dice.chance(50)),
        Type::Double => Value::F64(*dice.pick(&[0.0, 0.5, f64::NAN, f64::INFINITY])),
        Type::Float => Value::F32(0.5),
        Type::Int64 | Type::Sint64 | Type::Sfixed64 => Value::I64(number),
        Type::Uint64 | Type::Fixed64 => Value::U64(long),
        Type::Int32 | Type::Sint32 | Type::Sfixed32 => Value::I32(short),
        Type::Uint32 | Type::Fixed32 => Value::U32(short.unsigned_abs()),
        Type::Enum(_) => Value::EnumNumber(short),
    }
}
