#include "artel/data/images/augment.h"
#include "artel/base/text.h"
#include "tests/fuzz/target.h"

namespace artel::fuzz::augment {

// Transforms as text, one a line, and the shapes that they give.
void read(const Bytes& bytes) {
  with_name(bytes, [&] {
    const auto all = data::Augmentation::parse(split(bytes.text(), '\n'));
    const Shape shape = {3, 32, 32};
    require(all.output_shape(shape) == all.for_testing().output_shape(shape), ErrorKind::internal,
            "other shapes for test data");
  });
}

std::vector<std::string> seeds() {
  return {"flip\ncrop 28 2", "normalise 0.5 0.25\nrotate 10", "resized_crop 8\nerase 0.5",
          "jitter 0.2 0.1\ncutout 4\nmixup 0.2", "resize 8 9\ncentre_crop 4\ncover 4"};
}

}  // namespace artel::fuzz::augment
