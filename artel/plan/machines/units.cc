#include "artel/plan/machines/units.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <span>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/base/time.h"

namespace artel::plan {
namespace {

constexpr double kHour = 3600, kDay = 24 * kHour, kYear = 365.25 * kDay;

struct NamedUnit {
  std::string_view name;
  double size;
};

struct Prefix {
  std::string_view name;
  double factor;
};

// Longer names first, so that "Ki" is not read as "K".
constexpr std::array<Prefix, 11> kPrefixes{{{"Ki", 0x1p10},
                                            {"Mi", 0x1p20},
                                            {"Gi", 0x1p30},
                                            {"Ti", 0x1p40},
                                            {"k", 1e3},
                                            {"K", 1e3},
                                            {"M", 1e6},
                                            {"G", 1e9},
                                            {"T", 1e12},
                                            {"P", 1e15},
                                            {"", 1}}};

constexpr std::array<NamedUnit, 4> kBytes{{{"B", 1}, {"byte", 1}, {"bytes", 1}, {"", 1}}};
constexpr std::array<NamedUnit, 14> kRates{{{"bit/s", 0.125},
                                            {"bit", 0.125},
                                            {"bits/s", 0.125},
                                            {"b/s", 0.125},
                                            {"bps", 0.125},
                                            {"bE", 0.125},
                                            {"bE/s", 0.125},
                                            {"b", 0.125},
                                            {"b/sec", 0.125},
                                            {"B/sec", 1},
                                            {"B/s", 1},
                                            {"Bps", 1},
                                            {"bytes/s", 1},
                                            {"", 1}}};
// Spelled in any case, with prefixes in any case: "1 GBit/s", "10GigE", "64 GByte".
constexpr std::array<Prefix, 10> kLowerPrefixes{{{"ki", 0x1p10},
                                                 {"mi", 0x1p20},
                                                 {"gi", 0x1p30},
                                                 {"ti", 0x1p40},
                                                 {"k", 1e3},
                                                 {"m", 1e6},
                                                 {"g", 1e9},
                                                 {"t", 1e12},
                                                 {"p", 1e15},
                                                 {"", 1}}};
constexpr std::array<NamedUnit, 3> kLowerBytes{{{"b", 1}, {"byte", 1}, {"bytes", 1}}};
constexpr std::array<NamedUnit, 12> kLowerRates{{{"bit", 0.125},
                                                 {"bits", 0.125},
                                                 {"bit/s", 0.125},
                                                 {"bits/s", 0.125},
                                                 {"bit/sec", 0.125},
                                                 {"bits/sec", 0.125},
                                                 {"bps", 0.125},
                                                 {"ige", 0.125},
                                                 {"byte/s", 1},
                                                 {"bytes/s", 1},
                                                 {"byte/sec", 1},
                                                 {"bytes/sec", 1}}};
constexpr std::array<NamedUnit, 7> kFlops{{{"FLOP/s", 1},
                                           {"FLOPS", 1},
                                           {"FLOPs", 1},
                                           {"flop/s", 1},
                                           {"flops", 1},
                                           {"FLOPs/s", 1},
                                           {"", 1}}};
constexpr std::array<NamedUnit, 24> kSeconds{
    {{"ns", 1e-9},       {"us", 1e-6},        {"µs", 1e-6},          {"ms", 1e-3},
     {"s", 1},           {"second", 1},       {"seconds", 1},        {"min", 60},
     {"minute", 60},     {"minutes", 60},     {"h", kHour},          {"hour", kHour},
     {"hours", kHour},   {"d", kDay},         {"day", kDay},         {"days", kDay},
     {"week", 7 * kDay}, {"weeks", 7 * kDay}, {"month", kYear / 12}, {"months", kYear / 12},
     {"year", kYear},    {"years", kYear},    {"a", kYear},          {"", 1}}};
constexpr std::array<NamedUnit, 2> kFractions{{{"%", 0.01}, {"", 1}}};
constexpr std::array<NamedUnit, 1> kAmounts{{{"", 1}}};

std::span<const NamedUnit> names_of(Unit unit) {
  switch (unit) {
    case Unit::bytes:
      return kBytes;
    case Unit::rate:
      return kRates;
    case Unit::flops:
      return kFlops;
    case Unit::seconds:
      return kSeconds;
    case Unit::fraction:
      return kFractions;
    case Unit::amount:
      return kAmounts;
  }
  return kBytes;
}

std::string_view example_of(Unit unit) {
  switch (unit) {
    case Unit::bytes:
      return "a size such as \"64 GiB\"";
    case Unit::rate:
      return "a rate such as \"1 Gbit/s\", \"10GbE\" or \"12.5 GB/s\"";
    case Unit::flops:
      return "a speed such as \"60 GFLOP/s\"";
    case Unit::seconds:
      return "a time such as \"50 us\" or \"10 hours\"";
    case Unit::fraction:
      return "a share such as \"5 %\" or 0.05";
    case Unit::amount:
      return "a number such as 3.06";
  }
  return "";
}

std::string lower_case(std::string_view text) {
  std::string lower;
  for (const char c : text) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// The size of `name`, a prefix and a unit, or 0 if it is unknown.
double size_among(std::string_view name, std::span<const Prefix> prefixes,
                  std::span<const NamedUnit> units) {
  for (const Prefix& prefix : prefixes) {
    if (!name.starts_with(prefix.name)) continue;
    const std::string_view rest = name.substr(prefix.name.size());
    for (const NamedUnit& one : units)
      if (rest == one.name && !(rest.empty() && !prefix.name.empty()))
        return prefix.factor * one.size;
  }
  return 0;
}

// The size of the named unit, or 0 if it is unknown. Times and fractions take no prefixes.
double size_of_unit(std::string_view name, Unit unit) {
  constexpr std::array<Prefix, 1> none{{{"", 1}}};
  const bool prefixed = unit == Unit::bytes || unit == Unit::rate || unit == Unit::flops;
  const auto prefixes =
      prefixed ? std::span<const Prefix>(kPrefixes) : std::span<const Prefix>(none);
  if (const double size = size_among(name, prefixes, names_of(unit)); size > 0) return size;
  // "64G" and "64Gi" are sizes. "5 G" of a network or a processor is not clear.
  const std::string lower = lower_case(name);
  if (unit == Unit::bytes)
    for (const Prefix& prefix : kLowerPrefixes)
      if (lower == prefix.name) return prefix.factor;
  // "gb" has bytes, but "Gb" may mean bits.
  if (unit == Unit::bytes && (lower == name || lower.find("byte") != lower.npos))
    return size_among(lower, kLowerPrefixes, kLowerBytes);
  // "B" is a byte, so "MBPS" is not read as bits.
  const bool says_bytes = name.find('B') != name.npos && lower.find("bit") == lower.npos &&
                          lower.find("byte") == lower.npos;
  return unit == Unit::rate && !says_bytes ? size_among(lower, kLowerPrefixes, kLowerRates) : 0;
}

// Formats the value in the largest unit in which it is at least 1.
std::string with_unit(double value, std::span<const NamedUnit> units) {
  NamedUnit chosen = units.back();
  for (const NamedUnit& unit : units)
    if (value >= unit.size * 0.9999) {
      chosen = unit;
      break;
    }
  return fmt::format("{:.6g} {}", value / chosen.size, chosen.name);
}

}  // namespace

double parse_quantity(std::string_view text, Unit unit) {
  const std::string_view all = trim(text);
  double number = 0;
  const auto [rest, error] = std::from_chars(all.data(), all.data() + all.size(), number);
  const auto used = static_cast<size_t>(rest - all.data());
  const double size = error == std::errc() ? size_of_unit(trim(all.substr(used)), unit) : 0;
  const double value = number * size;
  require(size > 0 && value >= 0 && value < 1e30, ErrorKind::invalid_argument,
          "got \"{}\", expected {}", printable_line(text.substr(0, 40)), example_of(unit));
  return value;
}

std::string format_quantity(double value, Unit unit) {
  static constexpr std::array<NamedUnit, 5> bytes{
      {{"TiB", 0x1p40}, {"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10}, {"B", 1}}};
  static constexpr std::array<NamedUnit, 5> rates{
      {{"GB/s", 1e9}, {"MB/s", 1e6}, {"KB/s", 1e3}, {"B/s", 1}, {"B/s", 1}}};
  static constexpr std::array<NamedUnit, 5> flops{
      {{"PFLOP/s", 1e15}, {"TFLOP/s", 1e12}, {"GFLOP/s", 1e9}, {"MFLOP/s", 1e6}, {"FLOP/s", 1}}};
  static constexpr std::array<NamedUnit, 4> seconds{
      {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}}};
  switch (unit) {
    case Unit::bytes:
      return with_unit(value, bytes);
    case Unit::rate:
      return with_unit(value, rates);
    case Unit::flops:
      return with_unit(value, flops);
    case Unit::seconds:
      return with_unit(value, seconds);
    case Unit::fraction:
      return fmt::format("{:.3g} %", 100 * value);
    case Unit::amount:
      return fmt::format("{:.6g}", value);
  }
  return "";
}

std::string format_long_time(double seconds) {
  if (seconds < 1) return fmt::format("{:.3g} ms", 1e3 * seconds);
  if (seconds < 2 * kDay) return format_duration(seconds);
  if (seconds < 2 * kYear) return fmt::format("{:.3g} days", seconds / kDay);
  return fmt::format("{} years", format_count(static_cast<int64_t>(seconds / kYear)));
}

}  // namespace artel::plan
