#include <cstring>
#include <memory>
#include <span>

#include "artel/ps/filters/value_packing.h"
#include "artel/ps/messages.h"
#include "artel/ps/report.h"
#include "artel/ps/setup.h"
#include "tests/fuzz/target.h"

namespace artel::fuzz::ps_message {
namespace {

void read_message(std::span<const std::byte> bytes) {
  const ps::Message message = ps::parse_message(bytes);
  const std::unique_ptr<comm::Codec> codec = comm::make_codec("int8");
  switch (message.header.kind) {
    case ps::Kind::setup:
      ps::setup_from_text(message.value_text());
      break;
    case ps::Kind::text:
      ps::report_from_text(message.value_text());
      break;
    default:
      ps::unpack_values(message.values, message.keys.size(), message.header.has(ps::masked),
                        message.header.has(ps::coded) ? codec.get() : nullptr);
  }
}

std::string message_of(ps::Header header, const std::vector<uint64_t>& keys, std::string values) {
  header.listed = keys.size();
  header.value_bytes = values.size();
  std::string text(sizeof header + keys.size() * sizeof(uint64_t), '\0');
  std::memcpy(text.data(), &header, sizeof header);
  if (!keys.empty())
    std::memcpy(text.data() + sizeof header, keys.data(), keys.size() * sizeof(uint64_t));
  return text + values;
}

}  // namespace

// A message from an untrusted process: its header, its lists, its packed values and its texts.
void read(const Bytes& bytes) {
  with_name(bytes, [&] { read_message(bytes.data); });
}

std::vector<std::string> seeds() {
  return {message_of({.kind = ps::Kind::push, .flags = ps::masked, .keys = {0, 9}}, {1, 2, 3},
                     std::string("\5\0\0\0\0\0\0\0\0", 9)),
          message_of({.kind = ps::Kind::setup}, {}, ps::to_text(ps::Setup{.keys = {0, 4}})),
          message_of({.kind = ps::Kind::text}, {}, ps::to_text(ps::Report{.staleness = {{0, 1}}}))};
}

}  // namespace artel::fuzz::ps_message
