#include "artel/data/text.h"

#include <array>
#include <cmath>
#include <optional>

#include "artel/base/bytes.h"
#include "artel/tensor/from_bytes.h"

namespace artel::data {
namespace {

template <typename T>
int64_t element(const Tensor& tokens, int64_t i) {
  return reinterpret_cast<const T*>(tokens.raw())[i];
}

int64_t token_at(const Tensor& tokens, int64_t i) {
  switch (tokens.dtype()) {
    case DType::u8:
      return element<uint8_t>(tokens, i);
    case DType::i16:
      return element<int16_t>(tokens, i);
    case DType::i32:
      return element<int32_t>(tokens, i);
    default:
      return element<int64_t>(tokens, i);
  }
}

SampleLayout window_layout(const WindowOptions& options, int64_t vocabulary,
                           std::vector<std::string> names) {
  SampleLayout layout;
  layout.input = layout.target = {options.context};
  layout.input_type = DType::i32;
  layout.classes = vocabulary;
  layout.class_names = std::move(names);
  return layout;
}

// What a token of the file stands for in the vocabulary: itself, or a number from a table.
using ByteTable = std::array<int32_t, 256>;

class TokenWindows : public Dataset {
 public:
  TokenWindows(Tensor tokens, SampleLayout layout, int64_t stride, std::optional<ByteTable> table)
      : tokens_(std::move(tokens)),
        layout_(std::move(layout)),
        stride_(stride > 0 ? stride : layout_.input[0]),
        table_(table) {
    require(layout_.input[0] > 0, ErrorKind::invalid_argument, "a context of {} tokens",
            layout_.input[0]);
    require(size() > 0, ErrorKind::invalid_argument,
            "{} tokens are not enough for a context of {}; try a smaller context",
            tokens_.elements(), layout_.input[0]);
  }

  int64_t size() const override {
    const int64_t room = tokens_.elements() - layout_.input[0] - 1;
    return room < 0 ? 0 : room / stride_ + 1;
  }
  const SampleLayout& layout() const override { return layout_; }

  void read(int64_t index, std::span<std::byte> input, std::span<std::byte> target) const override {
    auto* x = reinterpret_cast<int32_t*>(input.data());
    auto* y = reinterpret_cast<int32_t*>(target.data());
    const int64_t first = index * stride_, context = layout_.input[0];
    for (int64_t i = 0; i <= context; ++i) {
      const int32_t token = known_token(first + i);
      if (i < context) x[i] = token;
      if (i > 0) y[i - 1] = token;
    }
  }

 private:
  int32_t known_token(int64_t place) const {
    const int64_t token = token_at(tokens_, place);
    if (table_) return (*table_)[static_cast<size_t>(token)];
    require(token >= 0 && token < layout_.classes, ErrorKind::corrupt,
            "token {} of the text is {}, expected 0 to {}", place, token, layout_.classes - 1);
    return static_cast<int32_t>(token);
  }

  Tensor tokens_;
  SampleLayout layout_;
  int64_t stride_;
  std::optional<ByteTable> table_;
};

}  // namespace

DatasetPtr token_windows(Tensor tokens, int64_t vocabulary, const WindowOptions& options,
                         std::vector<std::string> token_names) {
  const DType type = tokens.dtype();
  require(type == DType::u8 || type == DType::i16 || type == DType::i32 || type == DType::i64,
          ErrorKind::invalid_argument, "tokens of type {}, expected whole numbers",
          to_string(type));
  return std::make_shared<TokenWindows>(std::move(tokens),
                                        window_layout(options, vocabulary, std::move(token_names)),
                                        options.stride, std::nullopt);
}

Split text(const std::filesystem::path& path, double test_fraction, const WindowOptions& options) {
  const Bytes bytes = map_file(path);
  require(test_fraction > 0 && test_fraction < 1, ErrorKind::invalid_argument,
          "the test fraction is {}, expected a number between 0 and 1", test_fraction);
  ByteTable table{};
  for (const std::byte byte : bytes.data) table[std::to_integer<size_t>(byte)] = 1;
  std::vector<std::string> names;
  for (size_t byte = 0; byte < table.size(); ++byte) {
    if (!table[byte]) continue;
    table[byte] = static_cast<int32_t>(names.size());
    names.emplace_back(1, static_cast<char>(byte));
  }
  const auto count = static_cast<int64_t>(bytes.data.size());
  const Tensor tokens = tensor_over(bytes, {count}, DType::u8);
  const int64_t cut = count - std::llround(static_cast<double>(count) * test_fraction);
  const auto vocabulary = static_cast<int64_t>(names.size());
  const SampleLayout layout = window_layout(options, vocabulary, std::move(names));
  return {std::make_shared<TokenWindows>(tokens.rows(0, cut), layout, options.stride, table),
          std::make_shared<TokenWindows>(tokens.rows(cut, count), layout, options.stride, table)};
}

}  // namespace artel::data
