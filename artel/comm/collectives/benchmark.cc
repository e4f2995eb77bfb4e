#include "artel/comm/collectives/benchmark.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "artel/base/file.h"
#include "artel/base/text.h"

namespace artel::comm {
namespace {

std::span<std::byte> bytes_of(double& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

double slowest(Group& group, double seconds) {
  group.all_reduce(bytes_of(seconds), ElementType::f64, ReductionKind::max);
  return seconds;
}

template <typename Body>
double timed(Body&& body) {
  const auto begin = Clock::now();
  body();
  return seconds_between(begin, Clock::now());
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// The median time of the slowest rank in `body`, which is repeated for about `budget` seconds.
template <typename Body>
double measure(Group& group, double budget, Body&& body) {
  const auto once = [&] {
    group.barrier();
    return slowest(group, timed(body));
  };
  once();
  const double estimate = std::max(once(), 1e-6);
  const int repetitions = std::clamp(static_cast<int>(budget / estimate), 3, 1000);
  std::vector<double> times;
  for (int i = 0; i < repetitions; ++i) times.push_back(once());
  return median(times);
}

// Round trips between pairs of ranks, all pairs at once; ranks without a partner return nothing.
LinkCost measure_link(Group& group, int partner) {
  if (partner < 0) return {0, 0};
  const bool first = group.rank() < partner;
  const auto round_trip = [&](std::span<std::byte> data) {
    const auto limit = Deadline::after(30);
    if (first) group.send(partner, 0, data).wait(limit);
    group.receive(partner, 0, data).wait(limit);
    if (!first) group.send(partner, 0, data).wait(limit);
  };
  std::vector<std::byte> data(512 << 10);
  const auto one_way = [&](size_t bytes, int repetitions) {
    std::vector<double> times;
    for (int i = 0; i < repetitions; ++i)
      times.push_back(timed([&] { round_trip({data.data(), bytes}); }) / 2);
    return median(times);
  };
  const double latency = one_way(8, 20);
  const double large = one_way(data.size(), 3);
  return {latency, static_cast<double>(data.size()) / std::max(large - latency, 1e-7)};
}

// The worst link measured by any rank; `fallback` without such a link.
LinkCost worst(Group& group, const LinkCost& mine, const LinkCost& fallback) {
  double latency = mine.latency;
  double slowness = mine.bandwidth > 0 ? 1 / mine.bandwidth : 0;
  latency = slowest(group, latency);
  slowness = slowest(group, slowness);
  return latency > 0 ? LinkCost{latency, 1 / slowness} : fallback;
}

// Pairs consecutive ranks for which `belongs` is true; -1 for a rank without partner.
template <typename Belongs>
int partner_among(int size, int rank, Belongs belongs) {
  std::vector<int> ranks;
  for (int r = 0; r < size; ++r)
    if (belongs(r)) ranks.push_back(r);
  const auto self = std::find(ranks.begin(), ranks.end(), rank);
  if (self == ranks.end()) return -1;
  const size_t other = static_cast<size_t>(self - ranks.begin()) ^ 1;
  return other < ranks.size() ? ranks[other] : -1;
}

// The start of a line in the cache: "gloo on n07,n07,n08: ".
std::string layout_text(Group& group) {
  return fmt::format("{} on {}: ", group.transport(), fmt::join(group.hosts(), ","));
}

std::vector<std::string> lines_of(const std::string& cache) {
  try {
    return split(read_file(cache, 1 << 20), '\n');
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::not_found) throw;
    return {};
  }
}

// Empty if the line is missing or invalid; the link is then measured again.
std::optional<Calibration> recall(std::span<const std::string> lines, const std::string& layout) {
  for (const std::string& line : lines) {
    if (!line.starts_with(layout)) continue;
    try {
      return Calibration::from_text(line.substr(layout.size()));
    } catch (const Error&) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<BenchmarkRow> benchmark_all_reduce(Group& group, const BenchmarkOptions& options) {
  const size_t largest = *std::max_element(options.sizes.begin(), options.sizes.end());
  SharedBytes shared;
  std::vector<std::byte> own;
  std::byte* data = nullptr;
  if (options.shared_memory) {
    shared = group.allocate(largest);
    data = shared.get();
  } else {
    own.resize(largest);
    data = own.data();
  }
  const double n = group.size();
  std::vector<BenchmarkRow> rows;
  for (const Algorithm algorithm : options.algorithms)
    for (const size_t bytes : options.sizes) {
      const double seconds = measure(group, options.seconds, [&] {
        group.all_reduce({data, bytes}, ElementType::f32, {}, {.algorithm = algorithm});
      });
      const double bandwidth = static_cast<double>(bytes) / seconds;
      rows.push_back({algorithm, bytes, seconds, bandwidth, bandwidth * 2 * (n - 1) / n});
    }
  return rows;
}

double benchmark_lane_reduce(Group& group, size_t bytes, double seconds) {
  const SharedBytes memory = group.allocate(bytes);
  std::byte* const partial = memory.get();
  const LaneLayout layout = LaneLayout::even(group.size(), group.size());
  return measure(group, seconds, [&] {
    group.lane_reduce(layout, {&partial, 1}, {partial, bytes}, ElementType::f32);
  });
}

std::string benchmark_table(std::span<const BenchmarkRow> rows) {
  std::string table = fmt::format("{:<17} {:>9} {:>10} {:>12} {:>12}\n", "algorithm", "size",
                                  "time", "algorithmic", "bus");
  for (const BenchmarkRow& row : rows)
    table += fmt::format("{:<17} {:>9} {:>10} {:>10}/s {:>10}/s\n", to_string(row.algorithm),
                         format_bytes(static_cast<double>(row.bytes)), format_duration(row.seconds),
                         format_bytes(row.algorithm_bandwidth), format_bytes(row.bus_bandwidth));
  return table;
}

std::string benchmark_svg(std::span<const BenchmarkRow> rows) {
  constexpr double kWidth = 640, kHeight = 400, kLeft = 80, kBottom = 50, kTop = 20, kRight = 150;
  std::map<Algorithm, std::vector<const BenchmarkRow*>> curves;
  double low_x = 1e300, high_x = 0, low_y = 1e300, high_y = 0;
  for (const BenchmarkRow& row : rows) {
    curves[row.algorithm].push_back(&row);
    low_x = std::min(low_x, std::log2(row.bytes));
    high_x = std::max(high_x, std::log2(row.bytes));
    low_y = std::min(low_y, std::floor(std::log10(std::max(row.bus_bandwidth, 1.0))));
    high_y = std::max(high_y, std::ceil(std::log10(std::max(row.bus_bandwidth, 1.0))));
  }
  const auto x = [&](double bytes) {
    const double share = high_x > low_x ? (std::log2(bytes) - low_x) / (high_x - low_x) : 0.5;
    return kLeft + share * (kWidth - kLeft - kRight);
  };
  const auto y = [&](double bandwidth) {
    const double share =
        (std::log10(std::max(bandwidth, 1.0)) - low_y) / std::max(high_y - low_y, 1.0);
    return kHeight - kBottom - share * (kHeight - kBottom - kTop);
  };
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"white\"/>\n",
      kWidth, kHeight);
  for (double decade = low_y; decade <= high_y && !rows.empty(); ++decade) {
    const double at = y(std::pow(10, decade));
    svg += fmt::format(
        "<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#ddd\"/>\n<text x=\"{}\" "
        "y=\"{:.1f}\" text-anchor=\"end\">{:g} MB/s</text>\n",
        kLeft, kWidth - kRight, at, at, kLeft - 6, at + 4, std::pow(10, decade - 6));
  }
  constexpr std::array kColours{"#1b6ca8", "#d1495b", "#3a8a4d", "#b07d1b",
                                "#6d4c9f", "#444",    "#0aa"};
  size_t index = 0;
  for (const auto& [algorithm, curve] : curves) {
    const char* colour = kColours[index % kColours.size()];
    std::string points;
    for (const BenchmarkRow* row : curve)
      points +=
          fmt::format("{:.1f},{:.1f} ", x(static_cast<double>(row->bytes)), y(row->bus_bandwidth));
    svg += fmt::format(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n<text x=\"{}\" "
        "y=\"{}\" fill=\"{}\">{}</text>\n",
        points, colour, kWidth - kRight + 10, kTop + 20 + 18 * static_cast<double>(index), colour,
        to_string(algorithm));
    ++index;
  }
  if (!curves.empty())
    for (const BenchmarkRow* row : curves.begin()->second)
      svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                         x(static_cast<double>(row->bytes)), kHeight - kBottom + 20,
                         format_bytes(static_cast<double>(row->bytes)));
  return svg + "</svg>\n";
}

Calibration calibrate(Group& group) {
  const std::vector<int> hosts = group.host_numbers();
  const int own = hosts[group.rank()];
  const int neighbour =
      partner_among(group.size(), group.rank(), [&](int r) { return hosts[r] == own; });
  // The first rank of each host.
  const int stranger = partner_among(group.size(), group.rank(), [&](int r) {
    return std::find(hosts.begin(), hosts.end(), hosts[r]) - hosts.begin() == r;
  });
  Calibration result;
  group.barrier();
  result.inside = worst(group, measure_link(group, neighbour), result.inside);
  result.between = worst(group, measure_link(group, stranger), result.between);
  group.set_calibration(result);
  return result;
}

Calibration calibrate(Group& group, const std::string& cache, bool* remembered) {
  static_assert(std::is_trivially_copyable_v<Calibration>);
  const std::string layout = layout_text(group);
  struct {
    uint64_t known = 0;
    Calibration calibration;
  } shared;
  if (group.rank() == 0)
    if (const auto found = recall(lines_of(cache), layout)) shared = {1, *found};
  group.broadcast(std::as_writable_bytes(std::span(&shared, 1)), 0);
  if (remembered != nullptr) *remembered = shared.known != 0;
  if (shared.known != 0) {
    group.set_calibration(shared.calibration);
    return shared.calibration;
  }
  const Calibration measured = calibrate(group);
  if (group.rank() == 0) {
    std::string text = layout + measured.to_text() + "\n";
    for (const std::string& line : lines_of(cache))
      if (!line.empty() && !line.starts_with(layout)) text += line + "\n";
    write_file_atomically(cache, text);
  }
  return measured;
}

}  // namespace artel::comm
