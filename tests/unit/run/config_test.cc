#include "artel/run/config/config.h"

#include <gtest/gtest.h>

#include <set>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/train/strategies/shared_options.h"
#include "tests/support/error_of.h"

namespace artel {
namespace {

RunConfig parse(std::string_view text, const std::vector<std::string>& overrides = {}) {
  return parse_config(text, "run.toml", overrides);
}

std::string error_of(std::string_view text, const std::vector<std::string>& overrides = {}) {
  return artel::error_of([&] { parse(text, overrides); });
}

// A value of the key's type that is not its default.
std::string other_value(const KeyDescription& key) {
  if (key.name == "train.optimizer") return "{ name = \"adam\", lr = 0.25 }";
  if (key.name == "train.schedule") return "\"one_cycle\"";
  if (key.name == "train.batch_size") return "\"7 per worker\"";
  if (key.name == "train.class_weights") return "[16, 0.5]";
  if (key.name == "data.task") return "\"values\"";
  if (key.name == "train.precision") return "\"bf16\"";
  if (key.name == "cluster.strategy") return "\"ring\"";
  if (key.name == "cluster.reduction") return "\"fast\"";
  if (key.name == "cluster.transport") return "\"gloo\"";
  if (key.name == "cluster.mesh") return "\"auto\"";
  if (key.name == "cluster.instructions") return "\"common\"";
  if (key.name == "cluster.schedule") return "\"gpipe\"";
  if (key.name == "cluster.cuts") return "\"measured\"";
  if (key.name == "cluster.sharding") return "\"weights\"";
  if (key.name == "cluster.replicas") return "2";
  if (key.name == "prune.scope") return "\"layer\"";
  if (key.name == "observe.tensorboard") return "\"scalars\"";
  if (key.type == "text") return "\"some \\\"text\\\"\"";
  if (key.type == "whole number") return "7";
  if (key.type == "number") return std::stod(key.default_value) > 1 ? "7.5" : "0.125";
  if (key.type == "true or false") return key.default_value == "true" ? "false" : "true";
  if (key.type == "size") return "\"1.5 GiB\"";
  if (key.type == "whole number or range") return "\"2..8\"";
  if (key.type == "whole number or text") return "\"none\"";
  return "[\"a\", \"b c\"]";
}

TEST(Config, EveryKeyIsReadAndWrittenBack) {
  const std::string defaults = to_toml(RunConfig{});
  for (const KeyDescription& key : config_keys()) {
    const size_t dot = key.name.find('.');
    const std::string value = other_value(key);
    const RunConfig from_file = parse(
        fmt::format("[{}]\n{} = {}\n", key.name.substr(0, dot), key.name.substr(dot + 1), value));
    const std::string written = to_toml(from_file);
    EXPECT_NE(written, to_toml(parse(""))) << key.name;
    EXPECT_EQ(written, to_toml(parse(written))) << key.name;
    EXPECT_EQ(written, to_toml(parse("", {key.name + "=" + value}))) << key.name;
  }
  EXPECT_EQ(to_toml(parse(defaults)), to_toml(parse("")));
}

TEST(Config, WorkersAreANumberOrARange) {
  const BatchSize each = parse("", {"train.batch_size=16 per worker"}).train.batch_size;
  EXPECT_EQ(each.of(3), 48);
  EXPECT_EQ(parse("", {"train.batch_size=48"}).train.batch_size.of(3), 48);
  EXPECT_EQ(parse(to_toml(parse("", {"train.batch_size=16 per worker"}))).train.batch_size.of(2),
            32);
  for (const char* wrong : {"16 each", "0 per worker", "16 per worker now", "per worker"})
    EXPECT_THROW(parse("", {std::string("train.batch_size=") + wrong}), Error) << wrong;
  EXPECT_EQ(parse("", {"cluster.workers=4"}).cluster.workers, (WorkerCount{.most = 4}));
  EXPECT_EQ(parse("", {"cluster.workers=2..8"}).cluster.workers,
            (WorkerCount{.least = 2, .most = 8, .is_range = true}));
  for (const char* wrong : {"8..2", "2..", "..8", "two", "2..8..9", "0..4"})
    EXPECT_THROW(parse("", {fmt::format("cluster.workers={}", wrong)}), Error) << wrong;
}

TEST(Config, KeysAreUniqueAndExplained) {
  std::set<std::string> names;
  for (const KeyDescription& key : config_keys()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name;
    EXPECT_GT(key.help.size(), 10u) << key.name;
    EXPECT_NE(config_markdown().find("| `" + key.name + "` |"), std::string::npos) << key.name;
  }
}

TEST(Config, ValuesArriveInTheStructure) {
  const RunConfig config = parse(R"(
[data]
set = "mnist"
augment = ["flip", "crop 28 2"]
[model]
layers = ["dense 10"]
[train]
batch_size = 128
optimizer = "sgd lr=0.1 momentum=0.9"
schedule = { name = "multi_step", milestones = [3, 6] }
memory_limit = "2 GiB"
[cluster]
delay = "none"
)");
  EXPECT_EQ(config.data.set, "mnist");
  EXPECT_EQ(config.data.augment, (std::vector<std::string>{"flip", "crop 28 2"}));
  EXPECT_EQ(config.train.batch_size, 128);
  EXPECT_EQ(config.train.optimizer.at("momentum"), "0.9");
  EXPECT_EQ(config.train.optimizer.at("nesterov"), "false");  // completed
  EXPECT_EQ(config.train.schedule.at("milestones"), "[3, 6]");
  EXPECT_EQ(config.train.memory_limit.bytes, int64_t{2} << 30);
  EXPECT_FALSE(config.cluster.strategy_options.of<DelayOptions>().delay.has_value());
}

TEST(Config, OverridesWinInTheirOrder) {
  const RunConfig config =
      parse("[train]\nepochs = 3\noptimizer = { name = \"sgd\", lr = 0.1, momentum = 0.9 }\n",
            {"train.epochs=4", "train.epochs = 5", "train.optimizer.lr=0.05", "data.set=mnist",
             "data.path=/a b/c", "model.name=\"lenet5\"", "model.weights=2024",
             "data.augment=[\"flip\"]", "cluster.delay=4"});
  EXPECT_EQ(config.train.epochs, 5);
  EXPECT_EQ(config.train.optimizer.at("lr"), "0.05");
  EXPECT_EQ(config.train.optimizer.at("momentum"), "0.9");
  EXPECT_EQ(config.data.set, "mnist");
  EXPECT_EQ(config.data.path, "/a b/c");
  EXPECT_EQ(config.model.name, "lenet5");
  EXPECT_EQ(config.model.weights, "2024");
  EXPECT_EQ(config.data.augment, std::vector<std::string>{"flip"});
  EXPECT_EQ(config.cluster.strategy_options.of<DelayOptions>().delay, 4);
}

TEST(Config, MistakesAreNamedWithTheirPlace) {
  EXPECT_EQ(error_of("[train]\nepochs = 1\nbach_size = 32\n"),
            "[run.toml:3] unknown key 'train.bach_size'; did you mean 'train.batch_size'?");
  EXPECT_EQ(error_of("\n[trian]\nepochs = 1\n"),
            "[run.toml:2] unknown section 'trian'; did you mean 'train'?");
  EXPECT_EQ(error_of("epochs = 1\n"),
            "[run.toml:1] unknown key 'epochs'; did you mean 'train.epochs'?");
  EXPECT_EQ(error_of("[train]\nworkers = 1\n"),
            "[run.toml:2] unknown key 'train.workers'; did you mean 'cluster.workers'?");
  EXPECT_EQ(error_of("[train]\nlr = 1\n"),
            "[run.toml:2] unknown key 'train.lr'; did you mean 'train.optimizer.lr'?");
  EXPECT_EQ(error_of("[train]\nlearning_rate = 1\n"),
            "[run.toml:2] unknown key 'train.learning_rate'; did you mean 'train.optimizer.lr'?");
  EXPECT_EQ(error_of("[train]\nnum_epochs = 1\n"),
            "[run.toml:2] unknown key 'train.num_epochs'; did you mean 'train.epochs'?");
  EXPECT_EQ(error_of("[train]\nepochs = \"ten\"\n"),
            "[run.toml:2] train.epochs: got \"ten\", expected a whole number");
  EXPECT_EQ(error_of("[train]\nepochs = 1.5\n"),
            "[run.toml:2] train.epochs: got 1.5, expected a whole number");
  EXPECT_EQ(error_of("[train]\nbatch_size = 0\n"),
            "[run.toml:2] train.batch_size: got 0, expected at least 1");
  EXPECT_EQ(error_of("[train]\ntune = 1\n"),
            "[run.toml:2] train.tune: got 1, expected true or false");
  EXPECT_EQ(error_of("[data]\nvalidation = 2\n"),
            "[run.toml:2] data.validation: got 2, expected 0 to 0.9");
  EXPECT_EQ(parse("[train]\nclass_weights = [16, 0.5]\n").train.class_weights.numbers,
            (std::vector<double>{16, 0.5}));
  EXPECT_TRUE(parse("", {"train.class_weights=balanced"}).train.class_weights.balanced);
  EXPECT_EQ(error_of("[train]\nclass_weights = [1, 0]\n"),
            "[run.toml:2] train.class_weights: got 0 in the list, expected positive numbers");
  EXPECT_EQ(error_of("[data]\naugment = [1]\n"),
            "[run.toml:2] data.augment: got 1 in the list, expected text");
  EXPECT_EQ(error_of("[data]\nset = 5\n"), "[run.toml:2] data.set: got 5, expected text in quotes");
  EXPECT_EQ(error_of("[train]\nmemory_limit = \"2 Gib\"\n"),
            "[run.toml:2] train.memory_limit: got \"2 Gib\", expected a size such as \"512 MiB\" "
            "or \"2 GiB\"");
  EXPECT_EQ(error_of("[cluster]\nstrategy = \"rink\"\n").substr(0, 52),
            "[run.toml:2] cluster.strategy: got \"rink\", expected ");
  EXPECT_EQ(error_of("train = 3\n"), "[run.toml:1] train: got 3, expected a section [train]");
  EXPECT_TRUE(error_of("[train]\nepochs = \n").starts_with("[run.toml:2] invalid TOML: "));
}

TEST(Config, AKeyOfManyPartsIsRefused) {
  std::string key = "a";
  for (int i = 0; i < 200'000; ++i) key += ".a";
  for (const std::string& text : {key + " = 1", "[" + key + "]", "x = {" + key + " = 1}"})
    EXPECT_THROW(parse_config(text, "file"), Error);
  // Behind strings whose end is hard to see.
  for (const char* text : {R"("\"")", R"("""a"b""")", R"("""a""""")", "'\\'", "'''a'b'''"})
    EXPECT_THROW(parse_config(fmt::format("x = {{y = {}, {} = 1}}", text, key), "file"), Error);
  const std::string dots(1000, '.');
  EXPECT_EQ(parse_config("# " + dots + "\n[data]\npath = \"" + dots + "\"", "file").data.path,
            dots);
  EXPECT_EQ(
      parse_config("[data]\npath = \"\"\"" + dots + "\n\"" + dots + "\"\"\"", "file").data.path,
      dots + "\n\"" + dots);
}

TEST(Config, OldNamesOfKeysStillWorkAndSaySo) {
  const RunConfig config = parse("[train]\n\nkeep_last = 7\n");
  EXPECT_EQ(config.train.keep_checkpoints, 7);
  EXPECT_EQ(config.warnings,
            std::vector<std::string>{"[run.toml:3] train.keep_last is called "
                                     "train.keep_checkpoints since version 0.2.0; the old name "
                                     "still works"});
  EXPECT_EQ(to_toml(config), to_toml(parse("[train]\nkeep_checkpoints = 7\n")));
  EXPECT_TRUE(parse("[train]\nkeep_checkpoints = 7\n").warnings.empty());
  EXPECT_EQ(parse("", {"train.keep_checkpoints=4", "train.keep_last=5"}).train.keep_checkpoints, 5);
  EXPECT_EQ(error_of("[train]\nkeep_checkpoints = 4\nkeep_last = 5\n"),
            "[run.toml:3] train.keep_last: got this and train.keep_checkpoints, its new name, "
            "expected one of them; try without the old one");
  EXPECT_NE(config_markdown().find("| `train.keep_last` | `train.keep_checkpoints` | 0.2.0 |"),
            std::string::npos);
}

TEST(Config, OneNormToClipTo) {
  EXPECT_EQ(
      error_of("[train]\nclip_norm = 1\noptimizer = { name = \"adam\", clip_norm = 2 }\n"),
      "[run.toml:2] train.clip_norm: got 1, and clip_norm = 2 in train.optimizer, expected one "
      "of them; try without the other");
  EXPECT_EQ(parse("[train]\noptimizer = { clip_norm = 2 }\n").train.clip_norm, 0);
}

TEST(Config, MistakesInOverridesAreNamed) {
  EXPECT_EQ(error_of("", {"train.epochs"}),
            "[--set train.epochs] got no '=', expected KEY=VALUE such as train.epochs=10");
  EXPECT_EQ(error_of("", {"train.epoch=3"}),
            "[--set train.epoch=3] unknown key 'train.epoch'; did you mean 'train.epochs'?");
  EXPECT_EQ(error_of("", {"train.epochs=ten"}),
            "[--set train.epochs=ten] train.epochs: got \"ten\", expected a whole number");
  EXPECT_EQ(error_of("", {"train.epochs="}),
            "[--set train.epochs=] train.epochs: got \"\", expected a whole number");
}

TEST(Config, MistakesInOptionsAreNamed) {
  const std::string wrong_option =
      error_of("[train]\n\noptimizer = { name = \"adam\", rate = 1 }\n");
  EXPECT_TRUE(wrong_option.starts_with("[run.toml:3] [optimizer adam] unknown option 'rate'"))
      << wrong_option;
  const std::string wrong_name = error_of("", {"train.schedule=cosin"});
  EXPECT_NE(wrong_name.find("did you mean 'cosine'?"), std::string::npos) << wrong_name;
}

}  // namespace
}  // namespace artel
