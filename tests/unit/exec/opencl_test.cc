// Devices that are used through OpenCL.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <list>
#include <memory>
#include <numeric>

#include "artel/base/error.h"
#include "artel/base/lost_device.h"
#include "artel/exec/devices.h"
#include "artel/exec/opencl/device.h"
#include "artel/exec/opencl/ops/copies.h"
#include "artel/exec/opencl/ops/products.h"
#include "artel/exec/opencl/program_cache.h"
#include "artel/exec/opencl/self_test.h"
#include "tests/support/error_of.h"
#include "tests/support/opencl.h"
#include "tests/unit/exec/graph_harness.h"
#include "tests/unit/exec/kernel_test.h"

namespace artel::opencl {
namespace {

TEST(DeviceNames, AreChecked) {
  EXPECT_EQ(&device_by_name("cpu"), &cpu());
  for (const char* name : {"gpu", "opencl:", "opencl:-1", "opencl:1x", "opencl:99999999999", ""})
    EXPECT_NE(error_of([&] { device_by_name(name); }).find("expected \"cpu\""), std::string::npos)
        << name;
}

TEST(DeviceNames, OfDevicesThatDoNotExist) {
  if (!tests::opencl_device()) return;
  const std::string message = error_of([] { device_by_name("opencl:999"); });
  EXPECT_NE(message.find("this machine has"), std::string::npos) << message;
  EXPECT_EQ(&device_by_name("opencl"), &device_by_name("opencl:0"));
  EXPECT_EQ(&device_by_name("opencl:0 untested"), &device_by_name("opencl:0"));
  EXPECT_EQ(untested_device(untested_device("opencl")), "opencl untested");
  EXPECT_EQ(&device_by_name("opencl", {.place = static_cast<int>(find_devices().size())}),
            &device_by_name("opencl:0"));  // shared
}

Description described(bool is_cpu, bool available = true, size_t work_group_size = 1024) {
  Description one;
  one.is_cpu = is_cpu;
  one.available = available;
  one.work_group_size = work_group_size;
  return one;
}

TEST(DeviceNames, SpreadWorkersOverUsableDevicesThatAreNotCpus) {
  const Description gpu = described(false), processor = described(true);
  const Description broken = described(false, false), small = described(false, true, 32);
  EXPECT_EQ(devices_to_spread({processor, gpu, broken, gpu, small}), (std::vector<int>{1, 3}));
  EXPECT_EQ(devices_to_spread({broken, processor, processor}), (std::vector<int>{1, 2}));
  EXPECT_EQ(devices_to_spread({broken, small}), (std::vector<int>{0, 1}));  // to name the problem
  EXPECT_NE(small.problem().find("at most 32 items, expected 64"), std::string::npos);
}

OpenClDevice* device() { return dynamic_cast<OpenClDevice*>(tests::opencl_device()); }

TEST(OpenClMemory, IsZeroedCopiedAndCounted) {
  if (!device()) return;
  const Memory memory = device()->allocate(1000);
  std::vector<float> values(250, 7);
  const auto bytes = std::as_writable_bytes(std::span(values));
  const CopiedBytes before = device()->copied();
  device()->read(memory.address(), bytes.data(), 1000);
  EXPECT_EQ(values, std::vector<float>(250, 0));
  std::iota(values.begin(), values.end(), 0.0f);
  device()->write(memory.address(), bytes.data(), 1000);
  std::vector<float> part(2);
  device()->read(memory.part(40, 8).address(), std::as_writable_bytes(std::span(part)).data(), 8);
  EXPECT_EQ(part, (std::vector<float>{10, 11}));
  EXPECT_EQ(device()->copied().to_device - before.to_device, 1000);
  EXPECT_EQ(device()->copied().from_device - before.from_device, 1008);
  EXPECT_THROW(memory.host(), Error);
  const float here = 0;
  EXPECT_THROW(
      device()->write(reinterpret_cast<std::byte*>(const_cast<float*>(&here)), bytes.data(), 4),
      Error);
}

TEST(OpenClMemory, ThatDoesNotExistIsRefusedWithNumbers) {
  if (!device()) return;
  const std::string message = error_of([] { device()->allocate(size_t{1} << 50); });
  EXPECT_NE(message.find("cannot allocate"), std::string::npos) << message;
  EXPECT_NE(message.find("the device has"), std::string::npos) << message;
}

TEST(OpenClPrograms, ShowTheLogOfTheDriver) {
  if (!device()) return;
  const std::string message = error_of(
      [] { device()->kernel("__kernel void broken() { nothing_like_this(); }", "broken"); });
  EXPECT_NE(message.find("cannot compile"), std::string::npos) << message;
  EXPECT_NE(message.find("nothing_like_this"), std::string::npos) << message;
}

TEST(OpenClPrograms, AreFoundAgainByTheirKey) {
  const std::string file = cache_file("key", "binary");
  EXPECT_EQ(binary_in(file, "key"), "binary");
  EXPECT_FALSE(binary_in(file, "other key"));
  EXPECT_FALSE(binary_in("", "key"));
  for (size_t i = 0; i < file.size(); ++i) {
    std::string damaged = file;
    damaged[i] ^= 1;
    EXPECT_FALSE(binary_in(damaged, "key")) << i;
    EXPECT_FALSE(binary_in(file.substr(0, i), "key")) << i;
  }
}

// All transpositions, edges of tiles, bias and sums, against plain loops.
TEST(OpenClProducts, AgreeWithLoops) {
  if (!device()) return;
  const Products products(*device());
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{1, 1, 1},
                                                                   {5, 3, 0},
                                                                   {64, 64, 16},
                                                                   {65, 63, 17},
                                                                   {130, 7, 40},
                                                                   {3, 200, 33},
                                                                   {9, 30, 20},
                                                                   {40, 12, 20},
                                                                   {300, 20, 5},
                                                                   {20, 70, 9},
                                                                   {70, 9, 8},
                                                                   {30, 16, 3}})
    for (int form = 0; form < 8; ++form) {
      const bool ta = (form & 1) != 0, tb = (form & 2) != 0, adds = (form & 4) != 0;
      const std::vector<float> a = kernels::random_values(m * k + 1, 1);
      const std::vector<float> b = kernels::random_values(k * n + 1, 2);
      const std::vector<float> c = kernels::random_values(m * n, 3);
      const std::vector<float> bias = kernels::random_values(n, 4);
      const auto up = [](const std::vector<float>& values) {
        const Memory memory = device()->allocate(values.size() * sizeof(float));
        device()->write(memory.address(), reinterpret_cast<const std::byte*>(values.data()),
                        values.size() * sizeof(float));
        return memory;
      };
      const auto floats = [](const Memory& memory) {
        return reinterpret_cast<float*>(memory.address());
      };
      const Memory da = up(a), db = up(b), dc = up(c), dbias = up(bias);
      Product product;
      product.m = m, product.n = n, product.k = k;
      product.a = floats(da), product.lda = ta ? m : k, product.transpose_a = ta;
      product.b = floats(db), product.ldb = tb ? k : n, product.transpose_b = tb;
      product.c = floats(dc), product.ldc = n, product.accumulate = adds;
      if (!adds) product.bias = floats(dbias);
      products.run(product);
      std::vector<float> got(static_cast<size_t>(m * n));
      device()->read(dc.address(), reinterpret_cast<std::byte*>(got.data()),
                     got.size() * sizeof(float));
      std::vector<double> expected;
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          double sum = adds ? c[static_cast<size_t>(i * n + j)] : bias[static_cast<size_t>(j)];
          for (int64_t x = 0; x < k; ++x)
            sum += double{a[static_cast<size_t>(ta ? x * m + i : i * k + x)]} *
                   b[static_cast<size_t>(tb ? j * k + x : x * n + j)];
          expected.push_back(sum);
        }
      kernels::expect_close(got, expected, 1e-5);
    }
}

TEST(OpenClProducts, HaveTilesThatFit) {
  const auto tile = [](int64_t m, int64_t n) {
    const ProductTile fit = product_tile(m, n);
    return std::pair(fit.items, fit.rows);
  };
  EXPECT_EQ(tile(1000, 1000), (std::pair<int64_t, int64_t>{8, 8}));
  EXPECT_EQ(tile(4, 1000), (std::pair<int64_t, int64_t>{8, 1}));
  EXPECT_EQ(tile(20, 1000), (std::pair<int64_t, int64_t>{8, 4}));
  EXPECT_EQ(tile(1000, 3), (std::pair<int64_t, int64_t>{1, 2}));
  EXPECT_EQ(tile(1000, 10), (std::pair<int64_t, int64_t>{2, 4}));
  EXPECT_EQ(tile(1, 1), (std::pair<int64_t, int64_t>{1, 1}));
}

// A row's bits are the same alone, among a few, and among many.
TEST(OpenClProducts, GiveARowTheSameBitsInAnyTile) {
  if (!device()) return;
  constexpr int64_t kRows = 100, kColumns = 20, kDepth = 333;
  const Products products(*device());
  const std::vector<float> a = kernels::random_values(kRows * kDepth, 1);
  const std::vector<float> b = kernels::random_values(kDepth * kColumns, 2);
  const auto product_of = [&](int64_t m, int64_t n) {
    const auto bytes = [](size_t floats) { return floats * sizeof(float); };
    const Memory da = device()->allocate(bytes(a.size())), db = device()->allocate(bytes(b.size()));
    const Memory dc = device()->allocate(bytes(static_cast<size_t>(m * n)));
    device()->write(da.address(), std::as_bytes(std::span(a)).data(), bytes(a.size()));
    device()->write(db.address(), std::as_bytes(std::span(b)).data(), bytes(b.size()));
    const auto floats = [](const Memory& memory) {
      return reinterpret_cast<float*>(memory.address());
    };
    products.run({.m = m,
                  .n = n,
                  .k = kDepth,
                  .a = floats(da),
                  .lda = kDepth,
                  .b = floats(db),
                  .ldb = kColumns,
                  .c = floats(dc),
                  .ldc = n});
    std::vector<float> c(static_cast<size_t>(m * n));
    device()->read(dc.address(), std::as_writable_bytes(std::span(c)).data(), dc.bytes());
    return c;
  };
  const std::vector<float> all = product_of(kRows, kColumns);
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{1, 1}, {3, 8}, {17, 13}, {60, kColumns}}) {
    const std::vector<float> few = product_of(m, n);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j)
        ASSERT_EQ(few[static_cast<size_t>(i * n + j)], all[static_cast<size_t>(i * kColumns + j)])
            << i << ", " << j << " of " << m << " x " << n;
  }
}

// Parameters and constants cross once, inputs and results in each run.
TEST(OpenClPrograms, CopyOnlyWhatTheyMust) {
  if (!device()) return;
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {4, 32}});
  Value h = relu(dense(x, graph.parameter("w", {64, 32}), graph.parameter("b", {64})));
  h = add(h, graph.constant("c", Tensor({64})));
  graph.set_output("y", h);
  KernelChoices choices;
  choices.device = device();
  const Program program(lower(graph), {}, choices);
  Parameters parameters(program.parameter_entries());
  Frame frame(program, parameters);
  ThreadPool pool(1);
  const auto crossed = [&] {
    const CopiedBytes before = device()->copied();
    frame.set_input("x", Tensor({4, 32}));
    program.run(frame, pool, {});
    const CopiedBytes after = device()->copied();
    return std::pair(after.to_device - before.to_device, after.from_device - before.from_device);
  };
  constexpr int64_t kParameters = (64 * 32 + 64) * 4, kInput = 4 * 32 * 4, kOutput = 4 * 64 * 4;
  EXPECT_EQ(crossed(), std::pair(kParameters + kInput, kOutput));
  EXPECT_EQ(crossed(), std::pair(kInput, kOutput));
  parameters.set("b", Tensor({64}));
  EXPECT_EQ(crossed(), std::pair(kParameters + kInput, kOutput));
}

// A new value of a parameter is seen in the next run.
TEST(OpenClPrograms, SeeNewParameters) {
  if (!device()) return;
  tests::Harness harness(
      {{3}}, [](Graph&, const std::vector<Value>& p) { return sum(p[0]); }, {}, 1, 1, *device());
  harness.set("p0", Tensor::from({3}, std::vector<float>{1, 2, 3}));
  EXPECT_EQ(harness.loss(), 6);
  harness.set("p0", Tensor::from({3}, std::vector<float>{1, 2, 4}));
  EXPECT_EQ(harness.loss(), 7);
}

// Layouts change on the device: only inputs, labels, and results cross.
TEST(OpenClPrograms, ChangeLayoutsOnTheDevice) {
  if (!device()) return;
  tests::Harness harness(
      {{2, 3, 8, 8}, {4, 3, 3, 3}, {5, 4 * 36}},
      [](Graph&, const std::vector<Value>& p) {
        return tests::probe(dense(flatten(relu(conv2d(p[0], p[1]))), p[2]));
      },
      {}, 1, 1, *device());
  harness.loss();
  const Plan& plan = harness.program().plan();
  int changes = 0;
  for (const PlannedKernel& kernel : plan.kernels) {
    if (kernel.op != "change layout") continue;
    ++changes;
    EXPECT_EQ(plan.buffers[static_cast<size_t>(kernel.outputs[0])].device, device());
  }
  EXPECT_GT(changes, 0);
}

// What it has no kernel for runs on the processor.
TEST(OpenClPrograms, LeaveUnknownOpsToTheProcessor) {
  if (!device()) return;
  const auto sums_on = [](Device& where) {
    Graph graph;
    const Value x = graph.input("x", {DType::f32, {7}});
    graph.set_output("y", mul_scalar(graph.add_one("limb_sums", {unary("square", x)}), 2));
    KernelChoices choices;
    const Program program(lower(graph), {.device = &where}, choices);
    check_plan(program.graph(), program.plan());
    Parameters none(program.parameter_entries());
    Frame frame(program, none);
    frame.set_input("x", Tensor::from({7}, std::vector<float>{1, 2, 3, 4, 5, 6, 7}));
    ThreadPool pool(1);
    program.run(frame, pool, {});
    const Tensor y = frame.output("y");
    return std::vector<float>(y.values<float>().begin(), y.values<float>().end());
  };
  EXPECT_EQ(sums_on(*device()), sums_on(cpu()));
}

// The first device behind a loader with one wrong function.
std::unique_ptr<OpenClDevice> faulty_device(const std::function<void(Api&)>& spoil,
                                            double timeout = OpenClDevice::kTimeout) {
  std::string problem;
  static std::list<Api> apis;  // devices keep references
  spoil(apis.emplace_back(*find_api(problem)));
  return std::make_unique<OpenClDevice>(apis.back(), find_devices()[0], 0, timeout);
}

// The first device behind a loader that calls `change` with all values it has read.
template <auto change>
std::unique_ptr<OpenClDevice> device_that_reads() {
  return faulty_device([](Api& api) {
    static const auto read = api.read_buffer;
    api.read_buffer = [](Queue queue, Buffer buffer, uint32_t, size_t offset, size_t bytes,
                         void* to, uint32_t waits, const Event* wait_for, Event* event) -> Status {
      const Status status =
          read(queue, buffer, /*blocking=*/1, offset, bytes, to, waits, wait_for, event);
      if (bytes >= sizeof(float)) change(static_cast<float*>(to), bytes / sizeof(float));
      return status;
    };
  });
}

TEST(OpenClFaults, ADeviceThatHangsIsNamedAndGivenUp) {
  if (!device()) return;
  const auto hanging = faulty_device(
      [](Api& api) {
        api.get_event_info = [](Event, EventInfo, size_t, void* state, size_t*) -> Status {
          *static_cast<Status*>(state) = 1;  // runs, for ever
          return kSuccess;
        };
      },
      0.05);
  const std::string message = error_of([&] { hanging->finish(); });
  EXPECT_TRUE(message.starts_with("opencl:0 (")) << message;
  EXPECT_NE(message.find("did not finish within 0.05 s"), std::string::npos) << message;
}

// The driver may still write to the memory of a read that was given up.
TEST(OpenClFaults, AReadThatHangsLeavesTheMemoryOfItsCallerAlone) {
  if (!device()) return;
  static void* target = nullptr;
  const auto hanging = faulty_device(
      [](Api& api) {
        api.read_buffer = [](Queue, Buffer, uint32_t, size_t, size_t, void* to, uint32_t,
                             const Event*, Event* event) -> Status {
          target = to;
          *event = nullptr;
          return -5;
        };
      },
      0.05);
  const Memory memory = hanging->allocate(64);
  std::vector<std::byte> here(64);
  EXPECT_THROW(hanging->read(memory.address(), here.data(), here.size()), LostDevice);
  ASSERT_NE(target, nullptr);
  EXPECT_NE(target, here.data());
  std::memset(target, 1, here.size());  // still exists
  EXPECT_EQ(here, std::vector<std::byte>(64));
}

// A write returns before the device has the bytes, and its source may change.
TEST(OpenClMemory, IsCopiedInPieces) {
  if (!device()) return;
  std::vector<float> values(5'000'000);
  std::iota(values.begin(), values.end(), 0.0f);
  const std::vector<float> expected = values;
  const auto bytes = std::as_writable_bytes(std::span(values));
  const Memory memory = device()->allocate(bytes.size());
  device()->write(memory.address(), bytes.data(), bytes.size());
  std::ranges::fill(values, -1.0f);
  float last = 0;
  device()->read_later(memory.part(bytes.size() - 4, 4).address(),
                       reinterpret_cast<std::byte*>(&last), 4);
  device()->finish();
  EXPECT_EQ(last, expected.back());
  device()->read(memory.address(), bytes.data(), bytes.size());
  EXPECT_EQ(values, expected);
}

TEST(OpenClMemory, IsCounted) {
  if (!device()) return;
  const size_t before = device()->use().memory;
  {
    const Memory memory = device()->allocate(1000);
    EXPECT_EQ(device()->use().memory, before + 1024);
  }
  EXPECT_EQ(device()->use().memory, before);
}

TEST(OpenClFaults, AnAllocationThatFailsLeavesNoBuffer) {
  if (!device()) return;
  static int buffers = 0;
  const auto full = faulty_device([](Api& api) {
    static const auto create = api.create_buffer;
    static const auto release = api.release_buffer;
    api.create_buffer = [](Context context, uint64_t flags, size_t bytes, void* host,
                           Status* status) {
      ++buffers;
      return create(context, flags, bytes, host, status);
    };
    api.release_buffer = [](Buffer buffer) {
      --buffers;
      return release(buffer);
    };
    api.fill_buffer = [](Queue, Buffer, const void*, size_t, size_t, size_t, uint32_t, const Event*,
                         Event*) -> Status { return -4; };
  });
  EXPECT_NE(error_of([&] { full->allocate(64); }).find("out of device memory"), std::string::npos);
  EXPECT_EQ(buffers, 0);
}

TEST(OpenClFaults, ADeviceWithSmallWorkGroupsIsRefused) {
  if (!device()) return;
  std::string problem;
  Description small = find_devices()[0];
  small.work_group_size = 32;
  const std::string message =
      error_of([&] { OpenClDevice(*find_api(problem), std::move(small), 7); });
  EXPECT_TRUE(message.starts_with("opencl:7 (")) << message;
  EXPECT_NE(message.find("at most 32 items"), std::string::npos) << message;
}

// The driver may collect launches until it is told to begin.
TEST(OpenClPrograms, BeginBeforeAllAreLaunched) {
  if (!device()) return;
  static int flushes = 0;
  const auto counting = faulty_device([](Api& api) {
    static const auto flush = api.flush;
    api.flush = [](Queue queue) {
      ++flushes;
      return flush(queue);
    };
  });
  const Memory memory = counting->allocate(256);
  const int before = flushes;
  for (int i = 0; i < 64; ++i) Fill(*counting).run(reinterpret_cast<float*>(memory.address()), 64);
  EXPECT_GE(flushes - before, 4);
  counting->finish();
  EXPECT_GT(counting->use().busy_seconds, 0);
}

TEST(OpenClFaults, AForkedProcessIsRefused) {
  if (!device()) return;
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string text =
        error_of([] { device_by_name("opencl:0"); }) + "\n" + error_of([] { device()->finish(); });
    const bool written = ::write(pipe[1], text.data(), text.size()) > 0;
    ::_exit(written ? 0 : 1);
  }
  ::close(pipe[1]);
  std::string text(4096, '\0');
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, ::read(pipe[0], text.data(), text.size()))));
  ::close(pipe[0]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  const std::string expected =
      fmt::format("process {} used OpenCL before it forked this process", ::getpid());
  const size_t line = text.find('\n');
  EXPECT_NE(text.find(expected), std::string::npos) << text;
  EXPECT_NE(text.find(expected, line), std::string::npos) << text;
}

TEST(OpenClFaults, ADeviceThatIsLostIsNamed) {
  if (!device()) return;
  const auto lost = faulty_device([](Api& api) {
    api.run_kernel = [](Queue, BuiltKernel, uint32_t, const size_t*, const size_t*, const size_t*,
                        uint32_t, const Event*, Event*) -> Status { return -5; };
  });
  const std::string message = self_test(*lost);
  EXPECT_TRUE(message.starts_with("opencl:0 (")) << message;
  EXPECT_NE(
      message.find("starting a kernel failed: out of device resources, or the device is lost"),
      std::string::npos)
      << message;
}

TEST(OpenClFaults, WrongNumbersFailTheSelfTest) {
  if (!device()) return;
  const auto wrong = device_that_reads<[](float* values, size_t) { *values += 1; }>();
  EXPECT_TRUE(self_test(*wrong).starts_with("a network of pictures: element 0 of the loss is "))
      << self_test(*wrong);
}

// A kernel whose result is wrong in some runs only.
TEST(OpenClFaults, OtherBitsInASecondRunFailTheSelfTest) {
  if (!device()) return;
  const auto unsteady = device_that_reads<[](float* values, size_t) {
    static int reads = 0;
    if (++reads % 3 == 0) *values = std::nextafter(*values, 1e9f);
  }>();
  const std::string problem = self_test(*unsteady);
  EXPECT_NE(problem.find("a second run gives other bits"), std::string::npos) << problem;
}

// A wrong gradient that is small compared with the loss.
TEST(OpenClFaults, AWrongSmallGradientFailsTheSelfTest) {
  if (!device()) return;
  constexpr auto change_gradients = [](float* values, size_t count) {
    for (size_t i = 0; count > 1 && i < count; ++i)  // the loss is one value
      if (std::fabs(values[i]) < 2e-2f) values[i] *= 1.01f;
  };
  const auto wrong = device_that_reads<change_gradients>();
  const std::string problem = self_test(*wrong);
  EXPECT_NE(problem.find("of the gradient of '"), std::string::npos) << problem;
}

TEST(OpenClDevices, PassTheSelfTest) {
  if (!device()) return;
  EXPECT_EQ(self_test(*device()), "");
  EXPECT_GT(measure_products(*device()), 1e6);
}

}  // namespace
}  // namespace artel::opencl
