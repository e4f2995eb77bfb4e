// Programs on a second device. Its memory is inaccessible to the processor: its addresses are of
// protected pages, and its kernels translate them.
#include "artel/exec/device.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "artel/base/error.h"
#include "artel/base/random.h"
#include "artel/exec/libraries.h"
#include "artel/exec/program.h"
#include "artel/exec/sums.h"
#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/graph/passes/lower.h"

namespace artel {
namespace {

class RemoteDevice : public Device {
 public:
  RemoteDevice()
      : pages_(static_cast<std::byte*>(
            ::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
        storage_(cpu().allocate(kBytes)) {}
  ~RemoteDevice() override { ::munmap(pages_, kBytes); }

  std::string_view kind() const override { return "remote"; }
  Memory allocate(size_t bytes) override {
    std::byte* address = pages_ + used_;
    used_ += (bytes + 63) / 64 * 64;
    require(used_ <= kBytes, ErrorKind::memory, "the device is full");
    return {*this, {address, [](std::byte*) {}}, bytes};
  }
  void write(std::byte* to, const std::byte* from, size_t bytes) override {
    std::memcpy(storage(to), from, bytes);
  }
  void read(const std::byte* from, std::byte* to, size_t bytes) override {
    std::memcpy(to, storage(from), bytes);
  }

  std::byte* storage(const std::byte* address) const {
    require(address >= pages_ && address < pages_ + kBytes, ErrorKind::internal,
            "an address of another device");
    return storage_.address() + (address - pages_);
  }

 private:
  static constexpr size_t kBytes = size_t{16} << 20;
  std::byte* pages_;
  size_t used_ = 0;
  Memory storage_;
};

// The processor's kernel on the device's memory.
void register_remote(const std::string& op) {
  KernelDefinition definition = find_kernel(cpu(), op);
  definition.device = "remote";
  definition.make = [make = definition.make](const KernelRequest& request) {
    auto& device = dynamic_cast<RemoteDevice&>(request.device);
    Kernel kernel = make(request);
    kernel.run = [run = kernel.run, &device](const KernelRun& given) {
      std::vector<std::byte*> inputs, outputs;
      for (const std::byte* x : given.inputs) inputs.push_back(device.storage(x));
      for (const std::byte* y : given.outputs) outputs.push_back(device.storage(y));
      run({given.pool, inputs, outputs, given.workspace ? device.storage(given.workspace) : nullptr,
           given.context});
    };
    return kernel;
  };
  register_kernel(std::move(definition));
}

// Convolutions on images, a reshape and dense layers, with layouts that differ and outputs and
// gradients that the device computes.
Graph images_then_rows() {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {4, 3, 6, 6}});
  const Value y = graph.input("y", {DType::i32, {4}});
  Value h = relu(conv2d(x, graph.parameter("conv", {8, 3, 3, 3}), graph.parameter("c", {8})));
  h = unary("tanh", conv2d(h, graph.parameter("second", {8, 8, 3, 3})));
  h = dense(flatten(h), graph.parameter("w", {16, 8 * 4}), graph.parameter("b", {16}));
  h = dense(flatten(h), graph.parameter("v", {5, 16}));
  graph.set_output("prediction", h);
  graph.set_output("loss", cross_entropy(h, y));
  return lower(graph, Differentiation{});
}

struct DeviceResult {
  std::vector<float> bits;
  int copies = 0, on_device = 0;
};

DeviceResult run_on(Device& device) {
  KernelChoices choices;
  const Program program(images_then_rows(), {.device = &device}, choices);
  check_plan(program.graph(), program.plan());
  Parameters parameters(program.parameter_entries());
  const auto random = [](const std::string& name, const Shape& shape) {
    Tensor value(shape);
    Random numbers{hash_name(name)};
    for (float& v : value.values<float>()) v = numbers.uniform(-0.5f, 0.5f);
    return value;
  };
  for (const ParameterEntry& entry : parameters.entries())
    parameters.set(entry.name, random(entry.name, entry.shape));
  Frame frame(program, parameters);
  frame.set_input("x", random("x", {4, 3, 6, 6}));
  frame.set_input("y", Tensor::from<int32_t>({4}, {0, 3, 1, 4}));
  ThreadPool pool(1, limit_library_threads);
  program.run(frame, pool, {.check_numbers = true, .check_memory = true});
  DeviceResult result;
  const Tensor prediction = frame.output("prediction");
  result.bits.assign(prediction.values<float>().begin(), prediction.values<float>().end());
  result.bits.push_back(frame.scalar("loss"));
  for (const ParameterEntry& entry : parameters.entries())
    for (const GradientSlot& slot : program.plan().gradients)
      if (program.graph().value(slot.value).name == entry.name)
        for (size_t i = 0; i < slot.bytes / sizeof(float); ++i)
          result.bits.push_back(frame.gradients()[slot.offset / sizeof(float) + i]);
  for (const PlannedKernel& kernel : program.plan().kernels) {
    result.copies += kernel.op == "copy";
    result.on_device += program.plan().buffers[kernel.outputs[0]].device == &device;
  }
  return result;
}

TEST(Device, RunsWhatItHasKernelsForAndGivesTheSameBits) {
  const DeviceResult here = run_on(cpu());
  EXPECT_EQ(here.copies, 0);
  RemoteDevice device;
  EXPECT_EQ(run_on(device).on_device, 0);  // no kernels yet
  int kernels = 0;
  for (const char* op : {"dense", "conv2d_backward_weights", "matmul", "conv2d", "cross_entropy"}) {
    register_remote(op);
    RemoteDevice empty;
    const DeviceResult there = run_on(empty);
    EXPECT_EQ(there.bits, here.bits) << op;
    EXPECT_GT(there.copies, 0) << op;
    EXPECT_GT(there.on_device, kernels) << op;
    kernels = there.on_device;
  }
  register_remote("dense");  // a program may replace its own kernel
  RemoteDevice again;
  EXPECT_EQ(run_on(again).bits, here.bits);
}

// A value is copied once for all kernels of a device that read it.
TEST(Device, IsGivenAValueOnce) {
  if (!has_kernel(RemoteDevice(), "softmax")) register_remote("softmax");
  RemoteDevice device;
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {2, 3}});
  graph.set_output("a", softmax(softmax(x)));
  graph.set_output("b", softmax(x));
  KernelChoices choices;
  const Plan plan = make_plan(graph, 1, choices, device);
  std::vector<std::string> ops;
  for (const PlannedKernel& kernel : plan.kernels) ops.push_back(kernel.op);
  EXPECT_EQ(ops,
            (std::vector<std::string>{"copy", "softmax", "softmax", "softmax", "copy", "copy"}));
  EXPECT_EQ(plan.activations.size(), 2u);
}

TEST(Memory, IsReadByTheProcessorOnlyIfItIsItsOwn) {
  RemoteDevice device;
  const Memory there = device.allocate(64);
  EXPECT_THROW(there.host(), Error);
  EXPECT_THROW(there.part(32, 16).floats(), Error);
  EXPECT_THROW(there.part(32, 33), Error);
  Memory part;
  {
    const Memory here = cpu().allocate(64);
    std::fill(here.floats().begin(), here.floats().end(), 2.0f);
    part = here.part(16, 8);
  }
  EXPECT_EQ(std::vector<float>(part.floats().begin(), part.floats().end()),
            (std::vector<float>{2, 2}));
  ThreadPool pool(1);
  add_into(pool, part, part);
  EXPECT_EQ(part.floats()[1], 4);
  EXPECT_THROW(add_into(pool, part, there), Error);
  EXPECT_THROW(add_into(pool, part, part.part(0, 4)), Error);
}

}  // namespace
}  // namespace artel
