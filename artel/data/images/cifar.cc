#include "artel/data/images/cifar.h"

#include <cstring>
#include <thread>

#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/data/images/image.h"

namespace artel::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSide = 32, kPixels = kSide * kSide, kImageBytes = 3 * kPixels;
constexpr int kTrainBatches = 5;

CifarPart make_part(int64_t count) {
  return {Tensor({count, 3, kSide, kSide}, DType::u8), Tensor({count}, DType::u8)};
}

CifarPart joined(const std::vector<CifarPart>& parts) {
  int64_t count = 0;
  for (const CifarPart& part : parts) count += part.labels.elements();
  CifarPart all = make_part(count);
  int64_t at = 0;
  for (const CifarPart& part : parts) {
    std::memcpy(all.images.raw() + at * kImageBytes, part.images.raw(), part.images.bytes());
    std::memcpy(all.labels.raw() + at, part.labels.raw(), part.labels.bytes());
    at += part.labels.elements();
  }
  return all;
}

DatasetPtr dataset(const CifarPart& part, int64_t classes, std::vector<std::string> names = {}) {
  return tensor_dataset(part.images, part.labels, classes, std::move(names));
}

std::vector<std::string> class_names() {
  return {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
}

Split cifar10_pictures(const fs::path& folder) {
  const Bytes train_labels = map_file(folder / "train_lables.json");
  // Decoding dominates, half a second per picture, so each of the six pictures gets its own thread.
  std::vector<CifarPart> parts(kTrainBatches + 1);
  std::vector<std::exception_ptr> errors(parts.size());
  std::vector<std::jthread> threads;
  for (int i = 0; i < static_cast<int>(parts.size()); ++i)
    threads.emplace_back([&, i] {
      try {
        const bool test = i == kTrainBatches;
        const std::string name = test ? "test_batch" : fmt::format("data_batch_{}", i + 1);
        parts[i] = parse_cifar_png(map_file(folder / (name + ".png")),
                                   test ? map_file(folder / "test_lables.json") : train_labels,
                                   test ? 0 : i * int64_t{10000});
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
  threads.clear();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  const DatasetPtr test = dataset(parts.back(), 10, class_names());
  parts.pop_back();
  return {dataset(joined(parts), 10, class_names()), test};
}

}  // namespace

CifarPart parse_cifar(const Bytes& bytes, int label_bytes) {
  const int64_t record = label_bytes + kImageBytes;
  const auto size = static_cast<int64_t>(bytes.data.size());
  require(size > 0 && size % record == 0, ErrorKind::corrupt,
          "[{}] offset {}: {} bytes are not a multiple of {}, the size of an image and its label",
          bytes.name, size / record * record, size, record);
  CifarPart part = make_part(size / record);
  for (int64_t i = 0; i < size / record; ++i) {
    const std::byte* at = bytes.data.data() + i * record;
    part.labels.raw()[i] = at[label_bytes - 1];
    std::memcpy(part.images.raw() + i * kImageBytes, at + label_bytes, kImageBytes);
  }
  return part;
}

CifarPart parse_cifar_png(const Bytes& picture_bytes, const Bytes& labels, int64_t first_label) {
  const Picture picture = decode_picture(picture_bytes, 3);
  require(picture.width == kPixels, ErrorKind::corrupt,
          "[{}] is {} pixels wide, expected {}: one image in each row", picture_bytes.name,
          picture.width, kPixels);
  const nlohmann::json numbers = parse_json(labels.text(), labels.name);
  const auto count = static_cast<int64_t>(picture.height);
  require(numbers.is_array() && first_label >= 0 &&
              static_cast<int64_t>(numbers.size()) - first_label >= count,
          ErrorKind::corrupt, "[{}] is not a JSON array of {} labels or more", labels.name,
          first_label + count);
  CifarPart part = make_part(count);
  auto pixels = part.images.values<uint8_t>();
  for (int64_t i = 0; i < count; ++i) {
    const auto& label = numbers[static_cast<size_t>(first_label + i)];
    if (!label.is_number_unsigned() || label > 255)
      fail(ErrorKind::corrupt, "[{}] label {} is {}, expected a class", labels.name,
           first_label + i, json_excerpt(label));
    part.labels.values<uint8_t>()[i] = label.get<uint8_t>();
    const uint8_t* from = picture.samples.data() + i * kImageBytes;
    for (int64_t p = 0; p < kPixels; ++p)
      for (int64_t c = 0; c < 3; ++c) pixels[i * kImageBytes + c * kPixels + p] = from[3 * p + c];
  }
  return part;
}

Split cifar10(const fs::path& folder) {
  if (fs::exists(folder / "data_batch_1.png")) return cifar10_pictures(folder);
  std::vector<CifarPart> parts;
  for (int i = 1; i <= kTrainBatches; ++i)
    parts.push_back(parse_cifar(map_file(folder / fmt::format("data_batch_{}.bin", i)), 1));
  return {dataset(joined(parts), 10, class_names()),
          dataset(parse_cifar(map_file(folder / "test_batch.bin"), 1), 10, class_names())};
}

Split cifar100(const fs::path& folder) {
  return {dataset(parse_cifar(map_file(folder / "train.bin"), 2), 100),
          dataset(parse_cifar(map_file(folder / "test.bin"), 2), 100)};
}

}  // namespace artel::data
