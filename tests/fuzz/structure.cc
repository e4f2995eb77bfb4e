#include "tests/fuzz/structure.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "artel/base/bytes.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "tests/support/onnx_writer.h"

namespace artel::fuzz {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<uint64_t, 14> kNumbers = {
    0,      1,       2,          3,          0x7f,       0x80,       0xff,
    0xffff, 1 << 20, 0x7fffffff, 0x80000000, 0xffffffff, ~0ull >> 1, ~0ull};

template <typename List>
auto& any_of(List& list, Random& random) {
  return list[random.below(list.size())];
}

void mutate_text(std::string& text, Random& random) {
  const size_t at = text.empty() ? 0 : random.below(text.size());
  switch (random.below(5)) {
    case 0:
      text.insert(at, 1, static_cast<char>(random.below(256)));
      break;
    case 1:
      if (!text.empty()) text[at] = static_cast<char>(text[at] ^ (1 << random.below(7)));
      break;
    case 2:
      text.erase(at, 1 + random.below(4));
      break;
    case 3:
      text.insert(at, text.substr(0, 1 + random.below(8)));
      break;
    default:
      text.resize(random.below(2) == 0 ? 0 : std::min<size_t>(text.size() * 2, 4096));
  }
}

// ---- JSON

void collect(Json& value, std::vector<Json*>& all) {
  constexpr size_t kMost = 5000;
  if (all.size() >= kMost) return;
  all.push_back(&value);
  if (value.is_structured())
    for (Json& item : value) collect(item, all);
}

Json odd_value(Random& random) {
  switch (random.below(9)) {
    case 0:
      return any_of(kNumbers, random);
    case 1:
      return -static_cast<int64_t>(any_of(kNumbers, random) >> 1);
    case 2:
      return 0.5;
    case 3:
      return 1e300;
    case 4:
      return nullptr;
    case 5:
      return Json::array();
    case 6:
      return Json::object();
    case 7:
      return random.below(2) == 0;
    default:
      return std::string(random.below(3), 'a');
  }
}

void mutate_container(Json& value, Random& random) {
  const size_t at = random.below(value.size());
  const auto item = value.begin() + static_cast<std::ptrdiff_t>(at);
  const Json copy = *item;
  switch (random.below(3)) {
    case 0:
      value.erase(item);
      break;
    case 1:
      if (value.is_array())
        value.push_back(copy);
      else
        value[item.key() + (random.below(2) == 0 ? "2" : "")] = copy;
      break;
    default:
      std::swap(*item, *(value.begin() + static_cast<std::ptrdiff_t>(random.below(value.size()))));
  }
}

void mutate_json(Json& root, Random& random) {
  std::vector<Json*> all;
  collect(root, all);
  Json& value = *any_of(all, random);
  if (value.is_structured() && !value.empty() && random.below(4) > 0)
    return mutate_container(value, random);
  if (value.is_number_integer() && random.below(2) == 0) {
    const auto number = static_cast<uint64_t>(value.get<int64_t>());
    value = static_cast<int64_t>(random.below(2) == 0 ? number + 1 : number - 1);
  } else if (value.is_string() && random.below(2) == 0) {
    mutate_text(value.get_ref<std::string&>(), random);
  } else if (random.below(2) == 0) {
    const Json copy = *any_of(all, random);  // `value` may lie inside of it
    value = copy;
  } else {
    value = odd_value(random);
  }
}

std::optional<std::string> mutated_json(const std::string& text, Random& random) {
  Json root = ordered_json_or_null(text);
  if (!root.is_structured()) return {};
  try {
    mutate_json(root, random);
  } catch (const Json::exception&) {
    return {};  // a number that does not fit
  }
  return root.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// A length of eight bytes, the header, and data.
std::optional<std::string> mutated_safetensors(const std::string& input, Random& random) {
  uint64_t size = 0;
  if (input.size() < sizeof size + 2) return {};
  std::memcpy(&size, input.data(), sizeof size);
  if (size > input.size() - sizeof size || input[sizeof size] != '{') return {};
  const auto header = mutated_json(input.substr(sizeof size, size), random);
  if (!header) return {};
  const uint64_t changed = header->size();
  return std::string(reinterpret_cast<const char*>(&changed), sizeof changed) + *header +
         input.substr(sizeof size + size);
}

// ---- protocol buffers

struct WireField {
  uint64_t number = 0, kind = 0, value = 0;
  std::string bytes;              // of kind 2, if it is no message
  std::vector<WireField> inside;  // of a message
};

std::optional<uint64_t> take_number(std::string_view& rest) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !rest.empty(); shift += 7) {
    const auto next = static_cast<unsigned char>(rest[0]);
    rest.remove_prefix(1);
    value |= uint64_t{next & 0x7fu} << shift;
    if (next < 0x80) return value;
  }
  return {};
}

std::optional<std::vector<WireField>> fields_of(std::string_view rest, int depth) {
  constexpr int kMostDepth = 4;
  constexpr uint64_t kMostNumber = 40;
  std::vector<WireField> fields;
  while (!rest.empty()) {
    const auto tag = take_number(rest);
    if (!tag || *tag >> 3 == 0 || *tag >> 3 > kMostNumber) return {};
    WireField field{*tag >> 3, *tag & 7, 0, {}, {}};
    const size_t fixed = field.kind == 1 ? 8 : field.kind == 5 ? 4 : 0;
    if (field.kind == 0 || field.kind == 2) {
      const auto value = take_number(rest);
      if (!value) return {};
      field.value = *value;
    } else if (fixed == 0 || rest.size() < fixed) {
      return {};
    }
    const size_t size = field.kind == 2 ? field.value : fixed;
    if (size > rest.size()) return {};
    field.bytes = rest.substr(0, size);
    rest.remove_prefix(size);
    if (field.kind == 2 && size > 1 && depth < kMostDepth)
      if (auto inside = fields_of(field.bytes, depth + 1)) field.inside = std::move(*inside);
    fields.push_back(std::move(field));
  }
  return fields;
}

std::string wire_of(const std::vector<WireField>& fields) {
  std::string out;
  for (const WireField& field : fields) {
    out += wire_number(field.number * 8 + field.kind);
    if (field.kind == 0) out += wire_number(field.value);
    const std::string bytes = field.inside.empty() ? field.bytes : wire_of(field.inside);
    if (field.kind == 2) out += wire_number(bytes.size());
    if (field.kind != 0) out += bytes;
  }
  return out;
}

void collect(std::vector<WireField>& fields, std::vector<std::vector<WireField>*>& all) {
  if (!fields.empty()) all.push_back(&fields);
  for (WireField& field : fields) collect(field.inside, all);
}

void mutate_message(std::vector<WireField>& fields, Random& random) {
  const size_t at = random.below(fields.size());
  WireField& field = fields[at];
  switch (random.below(5)) {
    case 0:
      fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 1: {
      const WireField copy = field;
      fields.push_back(copy);
      break;
    }
    case 2:
      field.number = 1 + random.below(16);
      break;
    case 3:
      std::swap(field, any_of(fields, random));
      break;
    default:
      if (field.kind == 0)
        field.value = random.below(2) == 0 ? any_of(kNumbers, random) : field.value + 1;
      else if (field.kind == 2 && field.inside.empty())
        mutate_text(field.bytes, random);
  }
}

std::optional<std::string> mutated_message(const std::string& input, Random& random) {
  constexpr char kOnnxBegins = 0x08;  // the version, a number, is its first field
  if (input.empty() || input[0] != kOnnxBegins) return {};
  auto fields = fields_of(input, 0);
  if (!fields || fields->empty()) return {};
  std::vector<std::vector<WireField>*> messages;
  collect(*fields, messages);
  mutate_message(*any_of(messages, random), random);
  return wire_of(*fields);
}

// ---- Frames of a control connection

std::optional<std::vector<std::string>> frames_of(std::string_view input) {
  constexpr size_t kHead = sizeof(uint32_t);
  std::vector<std::string> frames;  // type and body of each
  while (!input.empty()) {
    uint32_t length = 0;
    if (input.size() < kHead) return {};
    std::memcpy(&length, input.data(), kHead);
    if (length == 0 || length > input.size() - kHead) return {};
    frames.emplace_back(input.substr(kHead, length));
    input.remove_prefix(kHead + length);
  }
  return frames;
}

// Numbers, lengths and texts inside of a body have no marks: a number is written anywhere.
void mutate_body(std::string& frame, Random& random) {
  if (random.below(2) == 0 || frame.size() < 2) {
    std::string body = frame.substr(1);
    mutate_text(body, random);
    frame = frame.substr(0, 1) + body;
    return;
  }
  const uint64_t number = any_of(kNumbers, random);
  const size_t at = 1 + random.below(frame.size() - 1);
  const size_t bytes = std::min<size_t>(size_t{1} << random.below(4), frame.size() - at);
  std::memcpy(frame.data() + at, &number, bytes);
}

std::optional<std::string> mutated_frames(const std::string& input, Random& random) {
  std::optional<std::vector<std::string>> frames = frames_of(input);
  if (!frames || frames->empty()) return {};
  std::string& one = any_of(*frames, random);
  constexpr uint64_t kTypes = 20;
  switch (random.below(6)) {
    case 0:
      one[0] = static_cast<char>(random.below(kTypes));
      break;
    case 1:
      std::swap(one, any_of(*frames, random));
      break;
    case 2:
      frames->push_back(std::string(one));
      break;
    default:
      mutate_body(one, random);
  }
  std::string text;
  for (const std::string& frame : *frames) {
    const auto length = static_cast<uint32_t>(frame.size());
    text.append(reinterpret_cast<const char*>(&length), sizeof length);
    text += frame;
  }
  return text;
}

// ---- npy: the text of the header, behind its length

std::optional<std::string> mutated_npy(const std::string& input, Random& random) {
  constexpr size_t kHead = 10;
  if (!input.starts_with("\x93NUMPY\x01") || input.size() < kHead) return {};
  uint16_t length = 0;
  std::memcpy(&length, input.data() + kHead - sizeof length, sizeof length);
  if (length > input.size() - kHead) return {};
  std::string header = input.substr(kHead, length);
  const size_t digit = header.find_first_of("0123456789", random.below(header.size() + 1));
  if (digit != header.npos && random.below(2) == 0)
    header.replace(digit, 1, std::to_string(any_of(kNumbers, random)));
  else
    mutate_text(header, random);
  const std::string values = input.substr(kHead + length);
  length = static_cast<uint16_t>(header.size());
  std::string text = input.substr(0, kHead - sizeof length);
  text.append(reinterpret_cast<const char*>(&length), sizeof length);
  return text + header + values;
}

}  // namespace

std::optional<std::string> mutate_inside(const std::string& input, Random& random) {
  if (auto mutated = mutated_npy(input, random)) return mutated;
  if (auto mutated = mutated_frames(input, random)) return mutated;
  if (auto mutated = mutated_message(input, random)) return mutated;
  if (auto mutated = mutated_safetensors(input, random)) return mutated;
  if (input.empty() || (input[0] != '{' && input[0] != '[')) return {};
  if (auto mutated = mutated_json(input, random)) return mutated;
  // A vocabulary with merges behind it.
  const size_t end = input.find_last_of("]}") + 1;
  auto mutated = mutated_json(input.substr(0, end), random);
  if (!mutated) return {};
  std::string rest = input.substr(end);
  if (random.below(4) == 0) mutate_text(rest, random);
  return *mutated + rest;
}

}  // namespace artel::fuzz
