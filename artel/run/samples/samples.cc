#include "artel/run/samples/samples.h"

#include <algorithm>

#include "artel/base/compress.h"
#include "artel/base/error.h"
#include "artel/base/with_where.h"
#include "artel/base/zip.h"
#include "artel/data/images/idx.h"
#include "artel/data/images/image.h"
#include "artel/data/images/planes.h"
#include "artel/data/text/labelled_text.h"
#include "artel/tensor/npy.h"

namespace artel {
namespace {

Shape with_rows(int64_t rows, const Shape& sample) {
  std::vector<int64_t> extents = {rows};
  extents.insert(extents.end(), sample.extents().begin(), sample.extents().end());
  return Shape(std::move(extents));
}

data::Image picture_image(const Bytes& bytes, const data::SampleLayout& layout) {
  const Shape& shape = layout.input;
  require(shape.rank() == 3 && (shape[0] == 1 || shape[0] == 3), ErrorKind::shape,
          "[{}] got a file that is neither NPY nor NPZ for a network whose samples are "
          "{}{}",
          bytes.name, to_string(shape), layout.tokenizer ? "; try --text" : "");
  return data::read_picture(bytes, shape);
}

// An array that is one sample, or rows of them, as rows; nothing if it is neither.
std::optional<Tensor> as_rows(const Tensor& array, const Shape& sample) {
  if (array.shape().rank() == 0 || array.elements() == 0) return std::nullopt;
  if (array.shape() == sample) return array.reshaped(with_rows(1, sample));
  if (array.shape() == with_rows(array.shape()[0], sample)) return array;
  return std::nullopt;
}

// Images may have their channels last, and may omit the channel axis if they have only one.
std::optional<Tensor> as_images(const Tensor& array, const Shape& sample) {
  if (sample.rank() != 3) return std::nullopt;
  const int64_t channels = sample[0], height = sample[1], width = sample[2];
  if (const auto rows = as_rows(array, {height, width, channels}))
    return data::channels_first(*rows);
  if (channels > 1) return std::nullopt;
  const auto rows = as_rows(array, {height, width});
  return rows ? std::optional(rows->reshaped(with_rows(rows->shape()[0], sample))) : std::nullopt;
}

// Numbers of the type that the network takes: tokens, or anything that a data set reads as f32.
Tensor as_type(const Tensor& array, DType type) {
  const bool tokens = data::is_token_type(array.dtype());
  if (type != DType::i32) return tokens ? array.to(type) : array;
  require(!is_floating(array.dtype()), ErrorKind::invalid_argument,
          "holds {}, expected whole numbers, which are tokens", to_string(array.dtype()));
  return tokens ? array : array.to(DType::i32);
}

// Rows of one input with samples of shape `sample`.
data::DatasetPtr array_rows(const Tensor& array, const Shape& sample, DType type) {
  std::optional<Tensor> rows = as_rows(array, sample);
  if (!rows) rows = as_images(array, sample);
  require(rows.has_value(), ErrorKind::shape,
          "holds an array {}, expected one or several samples {}{}", to_string(array.shape()),
          to_string(sample), sample.rank() == 3 ? " (channels may also come last)" : "");
  return data::tensor_dataset(as_type(*rows, type), Tensor());
}

// Rows of all inputs: the arrays x, x2, ... of an NPZ archive.
data::DatasetPtr archive_rows(const NamedTensors& arrays, const data::SampleLayout& layout) {
  std::vector<data::InputPart> parts = layout.parts;
  if (parts.empty()) parts = {{"x", layout.input}};
  std::vector<std::pair<std::string, data::DatasetPtr>> inputs;
  for (const data::InputPart& part : parts) {
    const Tensor* const array = find_tensor(arrays, part.name);
    require(array, ErrorKind::not_found, "holds no array '{}', expected one with samples {}",
            part.name, to_string(part.shape));
    inputs.emplace_back(part.name, with_where(part.name, [&] {
                          return array_rows(*array, part.shape, layout.input_type);
                        }));
  }
  return layout.parts.empty() ? inputs.front().second : data::join_inputs(inputs);
}

data::Image read_image(const data::Dataset& set, int64_t index) {
  const Shape& shape = set.layout().input;
  data::Image image(shape[0], shape[1], shape[2]);
  set.read(index, std::as_writable_bytes(std::span(image.pixels)), {});
  return image;
}

// "x, x2 and x3"
std::string names_of(const std::vector<data::InputPart>& parts) {
  std::string names;
  for (size_t i = 0; i < parts.size(); ++i)
    names += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i].name;
  return names;
}

data::DatasetPtr array_samples(const Bytes& bytes, const data::SampleLayout& layout) {
  if (!is_npy(bytes) && !is_zip(bytes) && !data::is_idx(bytes)) return nullptr;
  return with_where(bytes.name, [&] {
    if (is_zip(bytes)) return archive_rows(parse_npz(bytes), layout);
    require(layout.parts.empty(), ErrorKind::invalid_argument,
            "holds one array, but the network has {} inputs; try an NPZ file with the arrays {}",
            layout.parts.size(), names_of(layout.parts));
    return array_rows(data::is_idx(bytes) ? data::parse_idx(bytes) : parse_npy(bytes), layout.input,
                      layout.input_type);
  });
}

Tensor as_inputs(std::vector<data::Image> images, const data::Augmentation& augment) {
  Random unused({0});
  for (data::Image& image : images) augment.apply(image, unused);
  Tensor inputs(with_rows(static_cast<int64_t>(images.size()), images.front().shape()));
  float* to = inputs.values<float>().data();
  for (const data::Image& image : images)
    to = std::copy(image.pixels.begin(), image.pixels.end(), to);
  return inputs;
}

}  // namespace

data::DatasetPtr array_samples(const std::filesystem::path& path,
                               const data::SampleLayout& layout) {
  return array_samples(map_or_gunzip(path), layout);
}

Tensor read_rows(const data::Dataset& samples, int64_t first, int64_t count,
                 const data::Augmentation& augment) {
  const data::SampleLayout& layout = samples.layout();
  if (layout.input.rank() == 3) {
    std::vector<data::Image> images;
    for (int64_t i = 0; i < count; ++i) images.push_back(read_image(samples, first + i));
    return as_inputs(std::move(images), augment);
  }
  Tensor inputs(with_rows(count, layout.input), layout.input_type);
  const size_t size = layout.input_bytes();
  for (int64_t i = 0; i < count; ++i) samples.read(first + i, {inputs.raw() + i * size, size}, {});
  return inputs;
}

Tensor read_samples(const std::filesystem::path& path, const data::SampleLayout& layout,
                    const data::Augmentation& augment) {
  const Bytes bytes = map_or_gunzip(path);
  if (const data::DatasetPtr rows = array_samples(bytes, layout))
    return read_rows(*rows, 0, rows->size(), augment);
  return as_inputs({picture_image(bytes, layout)}, augment);
}

Tensor text_sample(const std::string& text, const std::optional<std::string>& second,
                   const data::SampleLayout& layout) {
  require(
      !layout.tokenizer || layout.classes != layout.tokenizer->size(), ErrorKind::invalid_argument,
      "predict: got a network that continues texts, expected one that classifies them; try artel "
      "generate RUN --prompt TEXT");
  require(layout.tokenizer != nullptr, ErrorKind::invalid_argument,
          "--text: got a network for samples {}, expected one that classifies texts",
          to_string(layout.input));
  const bool pairs = layout.input.rank() == 2;
  require(pairs == second.has_value(), ErrorKind::invalid_argument,
          "--text: got {}, but this network expected {}",
          second ? "a second text" : "no second text",
          pairs ? "pairs of texts; try --second" : "single texts");
  const data::TextRows::Row tokens =
      data::TextRows(layout.tokenizer, layout.input.back()).row(text, second);
  Tensor row(with_rows(1, layout.input), DType::i32);
  const auto types =
      std::copy(tokens.tokens.begin(), tokens.tokens.end(), row.values<int32_t>().begin());
  std::copy(tokens.types.begin(), tokens.types.end(), types);
  return row;
}

}  // namespace artel
