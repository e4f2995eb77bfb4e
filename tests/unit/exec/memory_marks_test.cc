// Kernels with a fault each, and what the check of memory says about them.
#include <gtest/gtest.h>

#include "artel/base/error.h"
#include "artel/exec/libraries.h"
#include "artel/graph/op.h"
#include "tests/unit/exec/graph_harness.h"

namespace artel {
namespace {

constexpr int kElements = 5;

struct Fault {
  std::string name;
  std::string complaint;  // empty: nothing is wrong
  std::function<void(const KernelRun&)> run;
  size_t workspace_bytes = 0;
  DType dtype = DType::f32;
};

void copy_input(const KernelRun& run, int count = kElements) {
  std::copy_n(run.in(0), count, run.out(0));
}

float* workspace(const KernelRun& run) { return reinterpret_cast<float*>(run.workspace); }

const std::vector<Fault>& faults() {
  static const std::string unwritten =
      "was not written, or depends on memory that was never written";
  static const std::string outside = "wrote outside of its outputs and workspace";
  static const std::vector<Fault> all = {
      {"no_fault", "",
       [](const KernelRun& run) {
         std::fill_n(workspace(run), kElements, 1.f);
         copy_input(run);
       },
       kElements * sizeof(float)},
      {"leaves_a_number_unwritten", unwritten,
       [](const KernelRun& run) { copy_input(run, kElements - 1); }},
      {"leaves_a_class_unwritten", unwritten,
       [](const KernelRun& run) { std::fill_n(run.as_output<int32_t>(0), kElements - 1, 1); }, 0,
       DType::i32},
      {"reads_an_unwritten_workspace", unwritten,
       [](const KernelRun& run) {
         for (int i = 0; i < kElements; ++i) run.out(0)[i] = run.in(0)[i] + workspace(run)[i];
       },
       kElements * sizeof(float)},
      {"reads_beyond_its_input", unwritten,
       [](const KernelRun& run) {
         for (int i = 0; i < kElements; ++i) run.out(0)[i] = run.in(0)[i] + run.in(0)[i + 1];
       }},
      {"writes_beyond_its_output", outside,
       [](const KernelRun& run) {
         copy_input(run);
         run.out(0)[kElements] = 1;
       }},
      {"writes_beyond_its_workspace", outside,
       [](const KernelRun& run) {
         copy_input(run);
         workspace(run)[kElements] = 1;
       },
       kElements * sizeof(float)},
      {"changes_its_input", outside,
       [](const KernelRun& run) {
         copy_input(run);
         const_cast<float*>(run.in(0))[0] = 3;
       }},
      {"changes_a_parameter", outside,
       [](const KernelRun& run) {
         copy_input(run);
         const_cast<float*>(run.in(1))[0] = 3;
       }},
      {"changes_a_constant", outside, [](const KernelRun& run) {
         copy_input(run);
         const_cast<float*>(run.in(2))[0] = 3;
       }}};
  return all;
}

// The fault between two kernels that have none.
std::string complaint_about(const Fault& fault) {
  register_op({.name = fault.name, .infer = [dtype = fault.dtype](const InferContext& context) {
                 return std::vector<TensorType>{{dtype, context.shape(0)}};
               }});
  register_kernel({.op = fault.name, .make = [&](const KernelRequest&) {
                     return Kernel{{}, fault.workspace_bytes, fault.run};
                   }});
  Graph graph;
  const Value p = graph.parameter("p", {kElements});
  const Value c = graph.constant("c", Tensor::from<float>({kElements}, {1, 2, 3, 4, 5}));
  const Value x = unary("softmax", p);
  const Value y = unary("softmax", graph.add_one(fault.name, {x, p, c}));
  graph.set_output("sum", mean(add(y, x)));
  KernelChoices choices;
  const Program program(lower(graph), {}, choices);
  Parameters parameters(program.parameter_entries());
  parameters.set("p", Tensor::from<float>({kElements}, {.1f, .2f, .3f, .4f, .5f}));
  ThreadPool pool(1, limit_library_threads);
  Frame frame(program, parameters);
  try {
    for (int run = 0; run < 2; ++run) program.run(frame, pool, {.check_memory = true});
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(fault.name), std::string::npos) << error.what();
    return error.what();
  }
  return "";
}

TEST(MemoryMarks, FindFaultyKernels) {
  for (const Fault& fault : faults()) {
    const std::string complaint = complaint_about(fault);
    EXPECT_EQ(complaint.empty(), fault.complaint.empty()) << fault.name << ": " << complaint;
    EXPECT_NE(complaint.find(fault.complaint), std::string::npos)
        << fault.name << ": " << complaint;
  }
}

// Memory that nothing reads any more is marked with a NaN, which must not look like a result.
TEST(MemoryMarks, GoTogetherWithTheCheckOfNumbers) {
  register_op({.name = "twice", .infer = [](const InferContext& context) {
                 return std::vector<TensorType>(2, {DType::f32, context.shape(0)});
               }});
  register_kernel({.op = "twice", .make = [](const KernelRequest&) {
                     return Kernel{{}, 0, [](const KernelRun& run) {
                                     for (size_t i : {0, 1})
                                       std::copy_n(run.in(0), kElements, run.out(i));
                                   }};
                   }});
  Graph graph;
  const Value unused = graph.add("twice", {graph.parameter("p", {kElements})}).at(1);
  graph.set_output("y", mean(graph.add("twice", {unused}).at(0)));
  KernelChoices choices;
  const Program program(lower(graph), {}, choices);
  Parameters parameters(program.parameter_entries());
  parameters.set("p", Tensor::from<float>({kElements}, {1, 2, 3, 4, 5}));
  ThreadPool pool(1, limit_library_threads);
  Frame frame(program, parameters);
  program.run(frame, pool, {.check_numbers = true, .check_memory = true});
}

}  // namespace
}  // namespace artel
