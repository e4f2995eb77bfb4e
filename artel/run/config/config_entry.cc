#include "artel/run/config/config_entry.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <sstream>

#include "artel/base/error.h"
#include "artel/base/text.h"

namespace artel {

void refuse(const ConfigEntry& entry, std::string_view what) {
  fail(ErrorKind::invalid_argument, "[{}] {}: {}", entry.where, entry.key, what);
}

// A short form of the value for messages, on one line.
std::string shown(const toml::node& node) {
  if (node.is_table()) return "a table";
  if (node.is_array()) return "a list";
  if (const auto text = node.value_exact<std::string>()) {
    std::string line = text->substr(0, 40);
    std::replace_if(
        line.begin(), line.end(), [](unsigned char c) { return c < ' '; }, ' ');
    return fmt::format("\"{}\"", line);
  }
  if (const auto number = node.value_exact<int64_t>()) return fmt::format("{}", *number);
  if (const auto number = node.value_exact<double>()) return fmt::format("{}", *number);
  if (const auto flag = node.value_exact<bool>()) return *flag ? "true" : "false";
  return "a date or time";
}

namespace {

[[noreturn]] void refuse_type(const ConfigEntry& entry, std::string_view expected) {
  refuse(entry, fmt::format("got {}, expected {}", shown(*entry.node), expected));
}

std::string text_of(const ConfigEntry& entry) {
  if (const auto text = entry.node->value_exact<std::string>()) return *text;
  if (entry.text.empty() || entry.node->is_array() || entry.node->is_table())
    refuse_type(entry, "text in quotes");
  return entry.text;
}

// The value of an optimizer or schedule option, in the notation that optim parses.
std::string option_text(const ConfigEntry& entry, const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto* list = node.as_array()) {
    std::vector<std::string> items;
    for (const toml::node& item : *list) items.push_back(option_text(entry, item));
    return fmt::format("[{}]", join(items, ", "));
  }
  if (!node.is_number() && !node.is_boolean()) refuse_type(entry, "numbers, text, true or false");
  return shown(node);
}

// "adam" or "sgd lr=0.1 momentum=0.9".
optim::Options parse_options(const ConfigEntry& entry, const std::string& text) {
  optim::Options options;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (options.empty() && equals == word.npos)
      options["name"] = word;
    else if (equals == word.npos || equals == 0)
      refuse(entry, fmt::format("got \"{}\", expected a form such as \"sgd lr=0.1\"", text));
    else
      options[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return options;
}

ByteSize parse_bytes(const ConfigEntry& entry, const std::string& text) {
  static const std::map<std::string, double> units = {
      {"", 1},      {"B", 1},        {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
      {"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  std::istringstream words(text);
  double number = -1;
  std::string unit, rest;
  if (!(words >> number)) number = -1;  // extraction sets 0 if there is no number
  words >> unit >> rest;
  const auto found = units.find(unit);
  const double bytes = found == units.end() ? -1 : number * found->second;
  if (!rest.empty() || !(bytes >= 0 && bytes < 0x1p62))
    refuse(entry,
           fmt::format("got \"{}\", expected a size such as \"512 MiB\" or \"2 GiB\"", text));
  return {static_cast<int64_t>(bytes)};
}

WorkerCount parse_workers(const ConfigEntry& entry, const std::string& text) {
  WorkerCount count = {.is_range = true};
  const size_t dots = text.find("..");
  const auto number = [&](size_t from, size_t to, int64_t& value) {
    const auto [rest, error] = std::from_chars(text.data() + from, text.data() + to, value);
    return error == std::errc() && rest == text.data() + to;
  };
  if (dots == text.npos || !number(0, dots, count.least) ||
      !number(dots + 2, text.size(), count.most) || count.least > count.most)
    refuse(entry, fmt::format("got \"{}\", expected a number, or a range such as \"2..8\"", text));
  return count;
}

BatchSize parse_batch_size(const ConfigEntry& entry, const std::string& text) {
  std::istringstream words(text);
  int64_t number = 0;
  std::string per, worker, rest;
  words >> number >> per >> worker >> rest;
  if (number < 1 || per != "per" || worker != "worker" || !rest.empty())
    refuse(entry,
           fmt::format("got \"{}\", expected a number of samples, or \"32 per worker\"", text));
  return {number, true};
}

}  // namespace

void Assign::operator()(const Key& key, std::string& value) {
  if (!matches(key)) return;
  value = text_of(entry_);
  const auto& choices = key.choices;
  if (choices.empty() || std::find(choices.begin(), choices.end(), value) != choices.end()) return;
  const std::vector<std::string> names(choices.begin(), choices.end());
  refuse(entry_, fmt::format("got \"{}\", expected one of {}{}", value, join(names, ", "),
                             did_you_mean(value, names)));
}

void Assign::operator()(const Key& key, int64_t& value) {
  if (matches(key)) value = whole_number(key, "a whole number");
}

void Assign::operator()(const Key& key, double& value) {
  if (!matches(key)) return;
  const auto number = entry_.node->is_number() ? entry_.node->value<double>() : std::nullopt;
  if (!number || !std::isfinite(*number)) refuse_type(entry_, "a number");
  check_range(key, *number);
  value = *number;
}

void Assign::operator()(const Key& key, bool& value) {
  if (!matches(key)) return;
  const auto flag = entry_.node->value_exact<bool>();
  if (!flag) refuse_type(entry_, "true or false");
  value = *flag;
}

void Assign::operator()(const Key& key, std::vector<std::string>& value) {
  if (!matches(key)) return;
  value.clear();
  const toml::array* list = entry_.node->as_array();
  if (!list) {  // one text is a list of one
    value.push_back(text_of(entry_));
    return;
  }
  for (const toml::node& item : *list) {
    const auto text = item.value_exact<std::string>();
    if (!text) refuse(entry_, fmt::format("got {} in the list, expected text", shown(item)));
    value.push_back(*text);
  }
}

void Assign::operator()(const Key& key, optim::Options& value) {
  const std::string_view name = entry_.key;
  if (name.starts_with(key.name) && name.substr(key.name.size()).starts_with('.')) {
    found_ = true;
    value[std::string(name.substr(key.name.size() + 1))] = option_text(entry_, *entry_.node);
  }
  if (!matches(key)) return;
  value.clear();
  const toml::table* table = entry_.node->as_table();
  if (!table) {
    value = parse_options(entry_, text_of(entry_));
    return;
  }
  for (const auto& [option, node] : *table)
    value[std::string(option.str())] = option_text(entry_, node);
}

void Assign::operator()(const Key& key, ByteSize& value) {
  if (!matches(key)) return;
  if (entry_.node->is_integer())
    value.bytes = whole_number(key, "a size");
  else
    value = parse_bytes(entry_, text_of(entry_));
}

void Assign::operator()(const Key& key, WorkerCount& value) {
  if (!matches(key)) return;
  if (entry_.node->is_integer()) {
    value = {.most = whole_number(key, "a number of workers")};
    return;
  }
  value = parse_workers(entry_, text_of(entry_));
  check_range(key, static_cast<double>(value.least));
  check_range(key, static_cast<double>(value.most));
}

void Assign::operator()(const Key& key, BatchSize& value) {
  if (!matches(key)) return;
  if (entry_.node->is_integer())
    value = whole_number(key, "a number of samples");
  else
    value = parse_batch_size(entry_, text_of(entry_));
}

void Assign::operator()(const Key& key, ClassWeights& value) {
  if (!matches(key)) return;
  value = {};
  const toml::array* const list = entry_.node->as_array();
  if (!list) {
    value.balanced = text_of(entry_) == "balanced";
    if (!value.balanced) refuse_type(entry_, "\"balanced\" or a list of numbers");
    return;
  }
  for (const toml::node& item : *list) {
    const auto number = item.is_number() ? item.value<double>() : std::nullopt;
    if (!number || !(*number > 0 && *number < 1e6))
      refuse(entry_, fmt::format("got {} in the list, expected positive numbers", shown(item)));
    value.numbers.push_back(*number);
  }
}

void Assign::operator()(const Key& key, std::optional<int64_t>& value) {
  if (!matches(key)) return;
  if (entry_.node->value_exact<std::string>() == "none")
    value.reset();
  else
    value = whole_number(key, "a whole number or \"none\"");
}

bool Assign::matches(const Key& key) {
  const bool same = key.name == entry_.key;
  found_ |= same;
  return same;
}

int64_t Assign::whole_number(const Key& key, std::string_view expected) const {
  const auto number = entry_.node->value_exact<int64_t>();
  if (!number) refuse_type(entry_, expected);
  check_range(key, static_cast<double>(*number));
  return *number;
}

void Assign::check_range(const Key& key, double number) const {
  if (number >= key.least && number <= key.most) return;
  refuse(entry_, fmt::format("got {}, expected {}", shown(*entry_.node),
                             std::isfinite(key.most) ? fmt::format("{} to {}", key.least, key.most)
                                                     : fmt::format("at least {}", key.least)));
}

}  // namespace artel
