// A program that adds one of each to Artel: op, layer, loss, metric, optimizer, data format, codec,
// transport, schedule, command, and key. It is `artel` with all of these by name.
#include <artel/artel.h>
#include <artel/cli/program.h>
#include <artel/comm/codecs/codec.h>
#include <artel/comm/transports/transports.h>
#include <artel/plan/schedule.h>

#include <cmath>
#include <cstring>
#include <fstream>

namespace {

using artel::Value;

void add_op() {
  const auto same_type = [](const artel::InferContext& context) {
    return std::vector<artel::TensorType>{context.type(0)};
  };
  artel::register_op({.name = "own_softsign",
                      .infer = same_type,
                      .gradient = [](artel::GradientContext& context) -> std::vector<Value> {
                        const Value width =
                            artel::add_scalar(artel::unary("abs", context.input(0)), 1);
                        return {artel::div(context.gradient(), artel::mul(width, width))};
                      },
                      .elementwise = true,
                      .activation = true});
  artel::register_kernel({.op = "own_softsign", .elements = [](const artel::ElementRun& run) {
                            for (int64_t i = 0; i < run.n; ++i)
                              run.out[i] = run.in[0][i] / (1 + std::abs(run.in[0][i]));
                          }});
}

void add_layer() {
  artel::nn::register_layer("own_scale", "FACTOR", [](artel::nn::LayerWords& words) {
    const double factor = words.number("factor", -10, 10);
    return artel::nn::Layer{
        "own_scale", [factor](artel::nn::Build&, Value x) { return artel::mul_scalar(x, factor); }};
  });
}

void add_loss_and_metric() {
  const auto distance = [](Value prediction, Value target) {
    return artel::unary("abs", artel::sub(artel::reshape(prediction, target.shape()), target));
  };
  artel::register_loss("own_distance", [=](Value prediction, Value target) {
    return artel::mean(distance(prediction, target));
  });
  artel::register_metric({.name = "own_error",
                          .sums =
                              [=](Value prediction, Value target) {
                                return artel::metric_sums(artel::sum(distance(prediction, target)),
                                                          target.shape().elements());
                              },
                          .value = artel::ratio});
}

void add_optimizer() {
  artel::optim::register_optimizer(artel::optim::custom(
      0.05, {.name = "own_steps", .update = [](const artel::optim::CustomStep& step) {
               for (size_t i = 0; i < step.parameter.size(); ++i)
                 step.parameter[i] -= step.learning_rate * step.gradient[i];
             }}));
}

// Lines of two numbers: x and y.
artel::data::Split open_pairs(const artel::data::OpenOptions& options) {
  std::ifstream file(options.path);
  std::vector<float> xs, ys;
  for (float x = 0, y = 0; file >> x >> y;) {
    xs.push_back(x);
    ys.push_back(y);
  }
  const auto rows = static_cast<int64_t>(xs.size());
  return artel::data::split(artel::data::tensor_dataset(artel::Tensor::from<float>({rows, 1}, xs),
                                                        artel::Tensor::from<float>({rows, 1}, ys)),
                            options.test_fraction, options.seed);
}

// Floats as they are.
class Plain final : public artel::comm::Codec {
 public:
  std::string name() const override { return "own_plain"; }
  size_t encoded_bytes(size_t floats) const override { return floats * sizeof(float); }

 private:
  void write(const artel::comm::CodecContext&, std::span<const float> values,
             std::byte* out) const override {
    std::memcpy(out, values.data(), values.size_bytes());
  }
  void add_read(std::span<const std::byte> in, std::span<float> sum, float scale) const override {
    for (size_t i = 0; i < sum.size(); ++i) {
      float value = 0;
      std::memcpy(&value, in.data() + i * sizeof value, sizeof value);
      sum[i] += scale * value;
    }
  }
};

void add_communication() {
  artel::comm::register_codec(
      {.name = "own_plain", .make = [](auto) { return std::make_unique<Plain>(); }});
  artel::comm::register_transport({.name = "own_memory",
                                   .help = "shared memory by another name",
                                   .make = [](artel::comm::GroupOptions options) {
                                     options.transport = "shm";
                                     return artel::comm::make_transport(options);
                                   }});
  artel::plan::register_schedule("own_order", artel::plan::schedule_kind("gpipe"));
}

struct OwnOptions {
  std::string greeting = "hello";
  void visit(artel::KeyVisitor& field) {
    field({.name = "own.greeting", .help = "What `greet` says."}, greeting);
  }
};

void add_command_and_key() {
  artel::register_keys("own", artel::keys_of<OwnOptions>());
  artel::cli::register_command(
      {.name = "own_greet", .help = "Greet a configuration", .run = [](const auto& words) {
         artel::println("{}",
                        artel::read_config(words.at(0)).own.template of<OwnOptions>().greeting);
         return 7;
       }});
}

void add_all() {
  add_op();
  add_layer();
  add_loss_and_metric();
  add_optimizer();
  artel::data::register_dataset({.name = "own_pairs", .open = open_pairs});
  add_communication();
  add_command_and_key();
}

}  // namespace

int main(int argc, char** argv) {
  add_all();
  add_all();  // as a cell of a notebook that is run twice
  return artel::cli::run(argc, argv);
}
