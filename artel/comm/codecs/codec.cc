#include "artel/comm/codecs/codec.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "artel/base/error.h"
#include "artel/base/random.h"
#include "artel/base/registry.h"
#include "artel/base/text.h"
#include "artel/comm/codecs/makers.h"
#include "artel/comm/group.h"

namespace artel::comm {
namespace {

// Offsets of the ranks' parts, and the end. All parts but the last are whole blocks.
std::vector<size_t> part_offsets(size_t floats, int parts) {
  const size_t blocks = codec_blocks(floats);
  std::vector<size_t> offsets;
  for (int part = 0; part <= parts; ++part)
    offsets.push_back(std::min(floats, blocks * part / parts * kCodecBlock));
  return offsets;
}

Registry<CodecDefinition>& codecs() {
  static Registry<CodecDefinition> all(
      "codec",
      [] {
        Registry<CodecDefinition>::Entries entries;
        for (CodecDefinition& codec :
             std::vector{none_codec(), fp16_codec(), bf16_codec(), int8_codec(), sign_codec(),
                         top_k_codec(), powersgd_codec()})
          entries.emplace_back(codec.name, std::move(codec));
        return entries;
      }(),
      Names::words);
  return all;
}

}  // namespace

uint64_t CodecContext::key() const {
  return mix_key({seed, hash_name("codec"), static_cast<uint64_t>(step), stream});
}

void Codec::encode(const CodecContext& context, std::span<const float> values,
                   std::span<std::byte> out) const {
  require(out.size() == encoded_bytes(values.size()), ErrorKind::invalid_argument,
          "[comm] room to encode {} floats by {}: got {} bytes, expected {}", values.size(), name(),
          out.size(), encoded_bytes(values.size()));
  write(context, values, out.data());
}

void Codec::decode_add(std::span<const std::byte> in, std::span<float> sum, float scale) const {
  require(in.size() == encoded_bytes(sum.size()), ErrorKind::corrupt,
          "[comm] {} floats encoded by {}: got {} bytes, expected {}", sum.size(), name(),
          in.size(), encoded_bytes(sum.size()));
  add_read(in, sum, scale);
}

void Codec::all_reduce(Group& group, const CodecContext& context, ErrorFeedback& feedback,
                       std::span<float> values, bool mean) const {
  const auto size = static_cast<size_t>(group.size());
  const auto self = static_cast<size_t>(group.rank());
  const std::vector<size_t> offsets = part_offsets(values.size(), group.size());
  const auto part_of = [&](std::span<float> floats, size_t part) {
    return floats.subspan(offsets[part], offsets[part + 1] - offsets[part]);
  };
  std::vector<size_t> sizes(size);
  for (size_t part = 0; part < size; ++part)
    sizes[part] = encoded_bytes(offsets[part + 1] - offsets[part]);
  std::vector<size_t> starts(size + 1, 0);
  std::partial_sum(sizes.begin(), sizes.end(), starts.begin() + 1);
  std::vector<std::byte> messages(starts.back());
  const auto message = [&](size_t part) {
    return std::span(messages).subspan(starts[part], sizes[part]);
  };
  const auto context_of = [&](uint64_t stage, uint64_t part) {
    return CodecContext{context.seed, context.step, mix_key({context.stream, stage, self, part})};
  };
  feedback.of_values.resize(values.size());
  if (feedback.of_sum.size() != part_of(values, self).size())
    feedback.of_sum.assign(part_of(values, self).size(), 0.0f);

  for (size_t part = 0; part < size; ++part)
    compress(*this, context_of(1, part), part_of(values, part), part_of(feedback.of_values, part),
             message(part));
  std::vector<std::byte> received(size * sizes[self]);
  group.all_to_all(messages, sizes, received, std::vector(size, sizes[self]));

  const std::span<float> sum = part_of(values, self);
  std::fill(sum.begin(), sum.end(), 0.0f);
  for (size_t rank = 0; rank < size; ++rank)
    decode_add(std::span(received).subspan(rank * sizes[self], sizes[self]), sum,
               mean ? 1.0f / static_cast<float>(size) : 1.0f);
  compress(*this, context_of(2, self), sum, feedback.of_sum, message(self));
  group.all_gather(message(self), messages, sizes);

  std::fill(values.begin(), values.end(), 0.0f);
  for (size_t part = 0; part < size; ++part) decode_add(message(part), part_of(values, part));
}

double codec_number(std::string_view codec, std::string_view argument, double low, double high) {
  double value = 0;
  const char* const last = argument.data() + argument.size();
  const auto [end, error] = std::from_chars(argument.data(), last, value);
  require(error == std::errc{} && end == last && value >= low && value <= high,
          ErrorKind::invalid_argument,
          "[compress] '{} {}': got '{}', expected a number from {} to {}", codec, argument,
          argument, low, high);
  return value;
}

void register_codec(CodecDefinition definition) {
  require_function("codec", definition.name, definition.make);
  std::string name = definition.name;
  codecs().add(std::move(name), std::move(definition));
}

std::unique_ptr<Codec> make_codec(std::string_view text) {
  const std::string_view trimmed = trim(text);
  const std::string_view name = trimmed.substr(0, trimmed.find(' '));
  const std::string_view argument = trim(trimmed.substr(name.size()));
  const CodecDefinition* const codec = codecs().find(name);
  require(codec, ErrorKind::not_found, "[compress] unknown codec: got '{}', expected one of {}{}",
          text, join(codec_names(), ", "), did_you_mean(name, codecs().names()));
  require(argument.empty() || !codec->usual_argument.empty(), ErrorKind::invalid_argument,
          "[compress] '{}': got '{}' after '{}', expected nothing", text, argument, name);
  return codec->make(argument.empty() ? codec->usual_argument : argument);
}

std::vector<std::string> codec_names() {
  std::vector<std::string> names;
  for (const CodecDefinition* codec : codecs().all())
    names.push_back(codec->usual_argument.empty()
                        ? codec->name
                        : fmt::format("{} {}", codec->name, codec->usual_argument));
  return names;
}

}  // namespace artel::comm
