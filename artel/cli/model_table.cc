#include "artel/cli/model_table.h"

#include "artel/base/text.h"
#include "artel/exec/program.h"
#include "artel/nn/summary.h"
#include "artel/observe/table.h"
#include "artel/predict/batches.h"

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

std::string describe_memory(const Model& model, const StepRequest& request, int64_t parameters) {
  KernelChoices choices;
  ModelGraph graph = training_graph(model, batch_of(request.x, request.batch),
                                    batch_of(request.y, request.batch), loss_by_name(request.loss));
  const double operations = nn::graph_flops(graph.graph);
  const Program program(std::move(graph.graph), {}, choices);
  const auto weights = static_cast<double>(parameters) * sizeof(float);
  const auto activations = static_cast<double>(program.plan().activation_bytes);
  const auto gradients = static_cast<double>(program.plan().gradient_bytes);
  const double optimizer = weights * request.slots;
  return fmt::format(
      "a training step of batch {}: {} operations; memory {}: weights {}, activations {}, "
      "gradients {}, optimizer {}\n",
      request.batch, format_operations(operations),
      format_bytes(weights + activations + gradients + optimizer), format_bytes(weights),
      format_bytes(activations), format_bytes(gradients), format_bytes(optimizer));
}

}  // namespace

std::string describe_model(const Model& model, const StepRequest& request) {
  const nn::Summary summary = nn::summarise(model, batch_of(request.x, 1));
  observe::Table table({"layer", "op", "output", "parameters", "operations"});
  for (const nn::SummaryRow& row : summary.rows)
    table.add({row.layer, row.op, to_string(without_batch(row.output)),
               format_count(row.parameters), format_operations(row.flops)});
  table.add({"total", "", "", format_count(summary.parameters), format_operations(summary.flops)});
  return table.text() + describe_memory(model, request, summary.parameters);
}

}  // namespace artel::cli
