#include <CLI/CLI.hpp>
#include <thread>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/exec/devices.h"
#include "artel/exec/instructions.h"
#include "artel/exec/memory_speed.h"
#include "artel/exec/opencl/self_test.h"
#include "artel/exec/peak.h"
#include "artel/observe/table.h"

namespace artel::cli {
namespace {

struct DevicesArguments {
  bool quick = false;
};

std::string in_billions(double rate) { return fmt::format("{:.3g}", rate / 1e9); }

void add_processor(observe::Table& table, bool quick) {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  ThreadPool pool(cores);
  const std::string& instructions = instruction_names()[static_cast<size_t>(best_instructions())];
  constexpr double kSeconds = 0.3;
  table.add({"cpu", fmt::format("processor ({})", instructions), "", "", "",
             fmt::format("{}", cores),
             quick ? "" : in_billions(measure_sustained_flops(pool, kSeconds)),
             quick ? "" : in_billions(measure_memory_speed(pool, cores)), ""});
}

// Returns the problem of the device, or an empty text.
std::string add_opencl(observe::Table& table, const opencl::Description& description, size_t number,
                       bool quick) {
  std::vector<std::string> cells = {
      fmt::format("opencl:{}", number),
      description.name,
      description.vendor,
      fmt::format("{}, {}", description.platform_name, description.driver),
      format_bytes(static_cast<double>(description.memory)),
      fmt::format("{}", description.compute_units)};
  std::string problem;
  if (!quick) {
    try {
      auto& device = dynamic_cast<opencl::OpenClDevice&>(
          device_by_name(untested_device(fmt::format("opencl:{}", number))));
      problem = opencl::self_test(device);
      cells.push_back(in_billions(opencl::measure_products(device)));
      cells.push_back(in_billions(opencl::measure_bandwidth(device)));
    } catch (const Error& error) {
      problem = error.what();
      cells.resize(8);
    }
    cells.emplace_back(problem.empty() ? "passed" : "failed");
  }
  table.add(std::move(cells));
  return problem;
}

void show_devices(const DevicesArguments& arguments) {
  observe::Table table(
      {"device", "name", "vendor", "driver", "memory", "units", "GFLOP/s", "GB/s", "self-test"});
  add_processor(table, arguments.quick);
  std::vector<opencl::Description> all;
  std::string missing;
  try {
    all = opencl::find_devices();
  } catch (const Error& error) {
    missing = error.what();
  }
  std::vector<std::string> problems;
  for (size_t i = 0; i < all.size(); ++i)
    if (std::string problem = add_opencl(table, all[i], i, arguments.quick); !problem.empty())
      problems.push_back(fmt::format("opencl:{} fails the self-test: {}", i, problem));
  fmt::print("{}", table.text());
  if (!missing.empty()) println("{}", missing);
  require(problems.empty(), ErrorKind::unsupported, "{}", join(problems, "; "));
}

}  // namespace

void add_devices(CLI::App& program) {
  const auto arguments = std::make_shared<DevicesArguments>();
  CLI::App* command =
      program.add_subcommand("devices", "List, test, and measure devices to compute on");
  command->add_flag("--quick", arguments->quick, "List devices without tests and measurements");
  command->footer(
      "Tests each device by comparing small networks with the CPU, and measures the speed of\n"
      "matrix products (GFLOP/s) and memory (GB/s). Exits with 1 if a device fails.\n\n"
      "Examples:\n"
      "  artel devices\n"
      "  artel train examples/fashion_mnist.toml --device opencl:0");
  command->callback([arguments] { show_devices(*arguments); });
}

}  // namespace artel::cli
