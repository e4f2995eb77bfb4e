#include "artel/run/samples/samples.h"

#include "artel/base/file.h"
#include "artel/tensor/npy.h"
#include "tests/fuzz/target.h"
#include "tests/support/pictures.h"
#include "tests/support/temporary_folder.h"

namespace artel::fuzz::samples {
namespace {

constexpr const char* kEndings[] = {"npy", "npz", "png", "jpg", "idx"};

}  // namespace

// Input files of `artel predict` for a network for pictures; the first byte selects the name.
void read(const Bytes& bytes) {
  static const TemporaryFolder folder;
  if (bytes.data.empty()) return;
  const auto file =
      folder / fmt::format("fuzz.{}",
                           kEndings[std::to_integer<size_t>(bytes.data[0]) % std::size(kEndings)]);
  write_input(file, bytes.text().substr(1));
  const data::SampleLayout layout = {.input = Shape{3, 8, 8}, .classes = 2};
  with_name(bytes,
            [&] { read_samples(file, layout, data::Augmentation::parse({"normalise 0.5 0.25"})); });
}

std::vector<std::string> seeds() {
  const TemporaryFolder folder;
  const Tensor image({3, 8, 8}, DType::f32), images({2, 8, 8, 3}, DType::u8);
  write_npy(folder / "a.npy", image);
  write_npy(folder / "b.npy", images);
  write_npz(folder / "a.npz", {{"x", images}});
  const std::vector<uint8_t> pixels(16 * 12 * 3, 7);
  return {std::string(1, '\0') + read_file(folder / "a.npy"),
          std::string(1, '\0') + read_file(folder / "b.npy"), "\1" + read_file(folder / "a.npz"),
          "\2" + png(16, 12, 3, pixels), "\3" + jpeg(16, 12, 3, pixels)};
}

}  // namespace artel::fuzz::samples
