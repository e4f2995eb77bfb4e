#include "artel/comm/codecs/codec.h"

#include <span>

#include "tests/fuzz/target.h"

namespace artel::fuzz::codec {
namespace {

constexpr std::string_view kCodecs[] = {"none", "fp16",     "bf16",      "int8",
                                        "sign", "top-k 1%", "top-k 50%", "powersgd 2"};

}  // namespace

// Which codec, how many floats (two bytes), and what a peer has sent.
void read(const Bytes& bytes) {
  constexpr size_t kHead = 3;
  if (bytes.data.size() < kHead) return;
  const auto byte = [&](size_t i) { return std::to_integer<size_t>(bytes.data[i]); };
  const auto codec = comm::make_codec(kCodecs[byte(0) % std::size(kCodecs)]);
  std::vector<float> sum((byte(1) + 256 * byte(2)) % 5000);
  with_name(bytes, [&] {
    const size_t size = codec->encoded_bytes(sum.size());
    std::vector<std::byte> encoded(bytes.data.begin() + kHead, bytes.data.end());
    if (byte(2) < 128) encoded.resize(size);  // otherwise a length that nobody expects
    encoded.shrink_to_fit();
    codec->decode_add(encoded, sum, 0.5f);
  });
}

std::vector<std::string> seeds() {
  std::vector<float> values(300);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) - 100.5f;
  std::vector<std::string> all;
  for (size_t i = 0; i < std::size(kCodecs); ++i) {
    const auto codec = comm::make_codec(kCodecs[i]);
    std::string input = {static_cast<char>(i), static_cast<char>(values.size() % 256),
                         static_cast<char>(values.size() / 256)};
    const size_t head = input.size();
    input.resize(head + codec->encoded_bytes(values.size()));
    codec->encode({.seed = 7, .step = 1}, values,
                  std::as_writable_bytes(std::span(input)).subspan(head));
    all.push_back(input);
  }
  return all;
}

}  // namespace artel::fuzz::codec
