#include "artel/optim/options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "artel/base/error.h"
#include "artel/base/text.h"

namespace artel::optim {
namespace {

// A plus sign and surrounding blanks are allowed, infinities and NaN are not.
bool parse(std::string_view text, double& value) {
  text = trim(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && std::isfinite(value);
}

}  // namespace

OptionReader::OptionReader(std::string where, const Options& options)
    : where_(std::move(where)), options_(options) {}

const std::string* OptionReader::find(std::string_view key) {
  known_.emplace_back(key);
  const auto found = options_.find(known_.back());
  return found == options_.end() ? nullptr : &found->second;
}

void OptionReader::operator()(std::string_view key, double& value) {
  const std::string* text = find(key);
  require(!text || parse(*text, value), ErrorKind::invalid_argument,
          "[{}] {}: got '{}', expected a number", where_, key, text ? *text : "");
}

void OptionReader::operator()(std::string_view key, int64_t& value) {
  const std::string* text = find(key);
  if (!text) return;
  double number = 0;
  require(parse(*text, number) && number == std::floor(number) && std::abs(number) < 0x1p53,
          ErrorKind::invalid_argument, "[{}] {}: got '{}', expected a whole number", where_, key,
          *text);
  value = static_cast<int64_t>(number);
}

void OptionReader::operator()(std::string_view key, bool& value) {
  const std::string* text = find(key);
  if (!text) return;
  require(*text == "true" || *text == "false", ErrorKind::invalid_argument,
          "[{}] {}: got '{}', expected true or false", where_, key, *text);
  value = *text == "true";
}

void OptionReader::operator()(std::string_view key, std::string& value) {
  if (const std::string* text = find(key)) value = *text;
}

void OptionReader::operator()(std::string_view key, std::vector<double>& value) {
  const std::string* text = find(key);
  if (!text) return;
  std::string_view list = trim(*text);
  if (list.size() >= 2 && list.front() == '[' && list.back() == ']')
    list = trim(list.substr(1, list.size() - 2));
  value.clear();
  if (list.empty()) return;
  for (const std::string& item : split(list, ',')) {
    require(parse(item, value.emplace_back()), ErrorKind::invalid_argument,
            "[{}] {}: got '{}', expected numbers such as [30, 60]", where_, key, *text);
  }
}

void OptionReader::finish() const {
  for (const auto& [key, value] : options_) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    fail(ErrorKind::invalid_argument, "[{}] unknown option '{}'{}; the options are {}", where_, key,
         did_you_mean(key, known_), join(known_, ", "));
  }
}

void OptionWriter::operator()(std::string_view key, double value) {
  options_[std::string(key)] = fmt::format("{}", value);
}

void OptionWriter::operator()(std::string_view key, int64_t value) {
  options_[std::string(key)] = fmt::format("{}", value);
}

void OptionWriter::operator()(std::string_view key, bool value) {
  options_[std::string(key)] = value ? "true" : "false";
}

void OptionWriter::operator()(std::string_view key, const std::string& value) {
  options_[std::string(key)] = value;
}

void OptionWriter::operator()(std::string_view key, const std::vector<double>& value) {
  options_[std::string(key)] = fmt::format("[{}]", fmt::join(value, ", "));
}

size_t chosen_name(const std::string& where, const Options& options,
                   const std::vector<std::string>& names) {
  const auto given = options.find("name");
  if (given == options.end()) return 0;
  const auto found = std::find(names.begin(), names.end(), given->second);
  require(found != names.end(), ErrorKind::invalid_argument,
          "[{}] name: got '{}', expected one of {}{}", where, given->second, join(names, ", "),
          did_you_mean(given->second, names));
  return static_cast<size_t>(found - names.begin());
}

}  // namespace artel::optim
