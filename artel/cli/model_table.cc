#include "artel/cli/model_table.h"

#include <algorithm>
#include <memory>

#include "artel/base/plural.h"
#include "artel/base/text.h"
#include "artel/exec/program.h"
#include "artel/nn/summary.h"
#include "artel/observe/table.h"
#include "artel/predict/batches.h"
#include "artel/train/step/memory_needs.h"
#include "artel/train/step/stepper.h"

namespace artel::cli {
namespace {

// "1.82 G", "650 k".
std::string format_operations(double number) {
  const char* units[] = {"", " k", " M", " G", " T"};
  int unit = 0;
  for (; number >= 1000 && unit < 4; ++unit) number /= 1000;
  return fmt::format("{:.{}f}{}", number, unit > 0 && number < 100 ? 2 : 0, units[unit]);
}

Shape without_batch(const Shape& shape) {
  if (shape.rank() == 0) return shape;
  return Shape(std::vector<int64_t>(shape.extents().begin() + 1, shape.extents().end()));
}

std::string describe_memory(const Model& model, const StepRequest& request) {
  KernelChoices choices;
  const int lanes = static_cast<int>(std::min<int64_t>(request.lanes, request.batch));
  const int64_t samples = (request.batch + lanes - 1) / lanes;
  const auto graph = [&] {
    return training_graph(model, batch_of(request.x, samples), batch_of(request.y, samples),
                          loss_by_name(request.loss), request.trained, {}, {}, lanes)
        .graph;
  };
  const double operations = nn::graph_flops(graph()) * lanes;
  auto program = std::make_unique<const Program>(graph(), CompileOptions{}, choices);
  if (Stepper::side_by_side(lanes, request.threads, Stepper::sums_per_lane(*program)) == 1)
    program = std::make_unique<const Program>(graph(), CompileOptions{.threads = request.threads},
                                              choices);
  const MemoryNeeds needs = memory_needs(*program, lanes, request.threads, request.slots,
                                         request.workers, request.sharding);
  const auto bytes = [](size_t count) { return format_bytes(static_cast<double>(count)); };
  observe::Table table({"memory of a worker", "bytes", "what"});
  const std::string in_parts = fmt::format(", in parts on {}", counted(request.workers, "worker"));
  const auto parted = [&](bool is) { return is ? in_parts : std::string(); };
  table.add({"weights", bytes(needs.weights()),
             "parameters and states" + parted(request.sharding.weights())});
  table.add({"optimizer", bytes(needs.optimizer),
             counted(request.slots, "number") + " for each trained parameter" +
                 parted(request.sharding.any())});
  table.add({"gradients", bytes(needs.gradients()),
             fmt::format("{} of {}{}", counted(needs.sums, "region"), bytes(needs.lane.gradients),
                         parted(request.sharding.gradients()))});
  if (needs.others_gradients > 0)
    table.add({"gradients of others", bytes(needs.others_gradients),
               "read while they are added up, if workers share memory"});
  table.add({"activations", bytes(needs.activations()),
             fmt::format("{} of {}, and workspaces of up to {} for each of {}",
                         counted(needs.frames, "lane"), bytes(needs.lane.borrowing),
                         bytes(needs.lane.workspace), counted(needs.groups, "group"))});
  const size_t mirrors = request.mirrors ? needs.mirrors : 0;
  if (mirrors > 0)
    table.add({"copies of parts", bytes(mirrors),
               "of its own and another worker's, where a quarter of the free memory is enough"});
  table.add({"total", bytes(needs.total() + mirrors), "and about 30 MiB for the program itself"});
  return fmt::format("a training step of batch {} in {} on {}: {} operations\n{}", request.batch,
                     counted(lanes, "lane"), counted(request.threads, "thread"),
                     format_operations(operations), table.text());
}

}  // namespace

std::string describe_model(const Model& model, const StepRequest& request) {
  const nn::Summary summary = nn::summarise(model, batch_of(request.x, 1));
  observe::Table table({"layer", "op", "output", "parameters", "operations"});
  for (const nn::SummaryRow& row : summary.rows)
    table.add({row.layer, row.op, to_string(without_batch(row.output)),
               format_count(row.parameters), format_operations(row.flops)});
  table.add({"total", "", "", format_count(summary.parameters), format_operations(summary.flops)});
  return table.text() + describe_memory(model, request);
}

}  // namespace artel::cli
