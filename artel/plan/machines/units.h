// Parses and formats quantities with units: "64 GiB", "1 Gbit/s", "10GbE", "28 TFLOP/s", "50 us".
//
//   const double bytes_per_second = artel::plan::parse_quantity("10GbE", artel::plan::Unit::rate);
#pragma once

#include <string>
#include <string_view>

namespace artel::plan {

enum class Unit {
  bytes,     // "64 GiB", "80 GB"
  rate,      // "1 Gbit/s", "10GbE", "100 Mbps", "12.5 GB/s": bytes per second
  flops,     // "60 GFLOP/s": operations per second
  seconds,   // "50 us", "10 hours", "30 days"
  fraction,  // "5 %"
  amount,    // 3.06: a plain number
};

// Returns bytes, bytes per second, operations per second, seconds, or a fraction of 1. A number
// without a unit is taken as such. Throws an Error that shows the text and an example.
double parse_quantity(std::string_view text, Unit unit);

// "64 GiB", "125 MB/s", "60 GFLOP/s", "50 us". The inverse of parse_quantity.
std::string format_quantity(double value, Unit unit);

// "4.2 ms", "3 h 12 min", "12 days", "355 years": for times of any length.
std::string format_long_time(double seconds);

}  // namespace artel::plan
