//! Orders as a shop keeps them: documents in arrays, and arrays in those.

use super::{CITIES, DIGITS, FIRST_NAMES, Fields, LAST_NAMES, SplitMix64, milliseconds};

/// Items of an order, at most.
const ITEMS_MAX: usize = 8;

/// The elements of an array that are documents.
const ELEMENTS: [&[u8]; ITEMS_MAX] = [
    b"\x030\0", b"\x031\0", b"\x032\0", b"\x033\0", b"\x034\0", b"\x035\0", b"\x036\0", b"\x037\0",
];

const GOODS: [&str; 16] = [
    "lamp",
    "chair",
    "table",
    "kettle",
    "blanket",
    "notebook",
    "backpack",
    "bicycle",
    "umbrella",
    "teapot",
    "mirror",
    "candle",
    "hammer",
    "garden hose",
    "raincoat",
    "bookshelf",
];

/// What happens to an order, one after the other.
const STEPS: [&str; 4] = ["placed", "paid", "packed", "shipped"];

/// Milliseconds between two steps, at most: three days.
const STEP_MILLISECONDS: u32 = 3 * 24 * 3600 * 1000;

pub(super) fn append(fields: &mut Fields<'_>, number: u64, random: &mut SplitMix64) {
    let (first, last) = (random.one_of(&FIRST_NAMES), random.one_of(&LAST_NAMES));
    let placed = milliseconds(number, random);
    let steps = 1 + random.below(4) as usize;
    fields.value(b"\x12number\0", number.to_le_bytes());
    fields.nested(b"\x03customer\0", |customer| {
        customer.string(b"\x02name\0", [first, " ", last]);
        customer.string(b"\x02email\0", [first, ".", last, "@example.com"]);
    });
    fields.value(b"\x09at\0", placed.to_le_bytes());
    fields.string(b"\x02status\0", [STEPS[steps - 1]]);
    fields.nested(b"\x03ship\0", |ship| {
        ship.string(b"\x02city\0", [random.one_of(&CITIES)]);
        ship.value(b"\x08express\0", [u8::from(random.below(5) == 0)]);
    });
    let mut cents = 0;
    let items = 1 + random.below(8) as usize;
    fields.nested(b"\x04items\0", |array| {
        for head in &ELEMENTS[..items] {
            array.nested(head, |fields| cents += item(fields, random));
        }
    });
    fields.value(b"\x01total\0", (f64::from(cents) / 100.0).to_le_bytes());
    let mut at = placed;
    fields.nested(b"\x04history\0", |array| {
        for (head, step) in ELEMENTS.iter().zip(&STEPS[..steps]) {
            array.nested(head, |fields| {
                fields.string(b"\x02step\0", [step]);
                fields.value(b"\x09at\0", at.to_le_bytes());
                fields.string(b"\x02by\0", [random.one_of(&FIRST_NAMES)]);
            });
            at += u64::from(random.below(STEP_MILLISECONDS));
        }
    });
}

/// One item; returns what it costs, in cents.
fn item(fields: &mut Fields<'_>, random: &mut SplitMix64) -> u32 {
    let digits: [&str; 6] = std::array::from_fn(|_| random.one_of(&DIGITS));
    let (quantity, cents) = (1 + random.below(5), 99 + random.below(20_000));
    fields.string(b"\x02sku\0", digits);
    fields.string(b"\x02name\0", [random.one_of(&GOODS)]);
    fields.value(b"\x10quantity\0", quantity.to_le_bytes());
    fields.value(b"\x01price\0", (f64::from(cents) / 100.0).to_le_bytes());
    fields.nested(b"\x04sizes\0", |sizes| {
        sizes.value(b"\x100\0", random.below(200).to_le_bytes());
        sizes.value(b"\x101\0", random.below(200).to_le_bytes());
        sizes.value(b"\x102\0", random.below(200).to_le_bytes());
    });
    quantity * cents
}

#[cfg(test)]
mod tests {
    use crate::seed::{Generator, Shape};
    use bson::{Bson, Document};

    #[test]
    fn an_order_costs_what_its_items_cost_and_stands_where_its_history_ends() {
        let generator = Generator::new(Shape::Orders, 1, 1);
        let (mut lengths, mut bytes) = (std::collections::BTreeSet::new(), 0);
        for number in 0..500 {
            let mut out = Vec::new();
            generator.append(number, &mut out);
            bytes += out.len();
            let order = Document::from_reader(&out[..]).expect("decodes");
            let items = order.get_array("items").expect("items");
            lengths.insert(items.len());
            let cost = items.iter().filter_map(Bson::as_document).map(|item| {
                assert_eq!(item.get_array("sizes").expect("sizes").len(), 3);
                f64::from(item.get_i32("quantity").expect("a number"))
                    * item.get_f64("price").expect("a price")
            });
            let total = order.get_f64("total").expect("a total");
            assert!((total - cost.sum::<f64>()).abs() < 0.005, "{order}");
            let history = order.get_array("history").expect("a history");
            let last = history.last().and_then(Bson::as_document).expect("a step");
            assert_eq!(last.get("step"), order.get("status"));
        }
        assert_eq!(lengths.into_iter().collect::<Vec<_>>(), (1..=8).collect::<Vec<_>>());
        assert!((800..1000).contains(&(bytes / 500)), "{} bytes", bytes / 500);
    }
}
