#include "artel/data/text/text_lines.h"

#include <algorithm>
#include <cstring>

#include "artel/base/log.h"
#include "artel/base/text.h"

namespace artel::data {
namespace {

class TextLineSet final : public Dataset {
 public:
  TextLineSet(Tensor inputs, Tensor targets, TokenizerPtr tokenizer)
      : inputs_(std::move(inputs)), targets_(std::move(targets)) {
    layout_.input = layout_.target = {inputs_.shape()[1]};
    layout_.input_type = DType::i32;
    layout_.classes = tokenizer->size();
    layout_.class_names = tokenizer->names();
    layout_.tokenizer = std::move(tokenizer);
  }

  int64_t size() const override { return inputs_.shape()[0]; }
  const SampleLayout& layout() const override { return layout_; }
  void read(int64_t index, std::span<std::byte> input, std::span<std::byte> target) const override {
    std::memcpy(input.data(), inputs_.raw() + index * input.size(), input.size());
    std::memcpy(target.data(), targets_.raw() + index * target.size(), target.size());
  }

 private:
  Tensor inputs_, targets_;
  SampleLayout layout_;
};

}  // namespace

DatasetPtr text_lines(const Bytes& text, TokenizerPtr tokenizer, int64_t context) {
  const std::vector<int32_t> ends = tokenizer->encode("\n");
  require(ends.size() == 1, ErrorKind::invalid_argument,
          "[{}] data.lines: a line feed is {} tokens, expected one; try data.tokenizer = "
          "\"character\"",
          text.name, ends.size());
  std::vector<std::string_view> lines;
  for (std::string_view rest = text.text(); !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) lines.push_back(line);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  require(!lines.empty(), ErrorKind::invalid_argument, "[{}] has no lines", text.name);
  const auto count = static_cast<int64_t>(lines.size());
  Tensor inputs({count, context}, DType::i32), targets({count, context}, DType::i32);
  std::fill_n(inputs.values<int32_t>().begin(), inputs.elements(), ends[0]);
  std::fill_n(targets.values<int32_t>().begin(), targets.elements(), kIgnoredTarget);
  int64_t cut = 0;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int32_t> tokens = tokenizer->encode(lines[static_cast<size_t>(i)]);
    tokens.push_back(ends[0]);
    const auto size = std::min<int64_t>(context, static_cast<int64_t>(tokens.size()));
    cut += size < static_cast<int64_t>(tokens.size());
    std::copy_n(tokens.begin(), size, targets.values<int32_t>().begin() + i * context);
    std::copy_n(tokens.begin(), size - 1, inputs.values<int32_t>().begin() + i * context + 1);
  }
  if (cut > 0)
    log(LogLevel::info, "[{}] {} of {} lines are longer than data.context and cut to {} tokens",
        text.name, format_count(cut), format_count(count), context);
  return std::make_shared<TextLineSet>(std::move(inputs), std::move(targets), std::move(tokenizer));
}

}  // namespace artel::data
