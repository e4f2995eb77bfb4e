#include "artel/base/keys.h"

#include <fmt/format.h>

#include <algorithm>

#include "artel/base/text.h"

namespace artel {

std::string toml_value(const std::string& value) {
  std::string result = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\')
      result += {'\\', c};
    else if (static_cast<unsigned char>(c) < ' ' || c == 0x7f)
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      result += c;
  }
  return result + '"';
}

std::string toml_value(int64_t value) { return fmt::format("{}", value); }
std::string toml_value(double value) { return fmt::format("{}", value); }
std::string toml_value(bool value) { return value ? "true" : "false"; }

std::string toml_value(const std::vector<std::string>& value) {
  std::vector<std::string> items;
  for (const std::string& item : value) items.push_back(toml_value(item));
  return fmt::format("[{}]", join(items, ", "));
}

std::string toml_value(const std::optional<int64_t>& value) {
  return value ? toml_value(*value) : "\"none\"";
}

void DescribeKeys::operator()(const Key& key, std::string& value) {
  add(key, "text", toml_value(value));
}
void DescribeKeys::operator()(const Key& key, int64_t& value) {
  add(key, "whole number", toml_value(value));
}
void DescribeKeys::operator()(const Key& key, double& value) {
  add(key, "number", toml_value(value));
}
void DescribeKeys::operator()(const Key& key, bool& value) {
  add(key, "true or false", toml_value(value));
}
void DescribeKeys::operator()(const Key& key, std::vector<std::string>& value) {
  add(key, "list of texts", toml_value(value));
}
void DescribeKeys::operator()(const Key& key, std::optional<int64_t>& value) {
  add(key, "whole number or text", toml_value(value));
}

void DescribeKeys::add(const Key& key, std::string_view type, std::string value) {
  const auto same = [&](const KeyDescription& other) { return other.name == key.name; };
  const bool heeded = strategy_.empty() || key.with.empty() ||
                      std::find(key.with.begin(), key.with.end(), strategy_) != key.with.end();
  if (heeded && std::none_of(keys.begin(), keys.end(), same))
    keys.push_back(
        {std::string(key.name), std::string(type), std::move(value), std::string(key.help)});
}

}  // namespace artel
