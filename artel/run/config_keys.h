// The one table of all configuration keys except those of strategies. Internal to run/config*.cc.
#pragma once

#include "artel/base/keys.h"
#include "artel/base/text.h"
#include "artel/nn/loss.h"
#include "artel/nn/metric.h"
#include "artel/run/config.h"
#include "artel/train/strategies/registry.h"

namespace artel {

// Keys that used to have another name. The old names still work, with a warning.
struct RenamedKey {
  std::string_view old_name, name;
  std::string_view since;  // the version that has the new name
};
inline constexpr RenamedKey kRenamedKeys[] = {
    // Beside keep_last_batch, it seemed to be about batches.
    {"train.keep_last", "train.keep_checkpoints", "0.2.0"},
};

// "`mse`, `l1` or `kl`".
inline std::string one_of(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += fmt::format("{}`{}`", i == 0 ? "" : i + 1 < names.size() ? ", " : " or ", names[i]);
  return text;
}

// Calls field(Key, member) for each key in the order of the documentation, then for the keys of
// strategies. `field` is a KeyVisitor that takes ByteSize, WorkerCount,
// ClassWeights and optim::Options, too.
void visit_keys(RunConfig& config, auto& field) {
  auto& data = config.data;
  field({"data.set",
         "A data set by name (`artel data list` shows them), or the kind of data at `data.path`: "
         "`folder` (of pictures), `csv`, `npz`, `npy`, `idx`, `libsvm`, `text`, or "
         "`labelled_text` (CSV)."},
        data.set);
  field({"data.path",
         "Folder or file of the data, relative to the folder of the configuration file (after "
         "`--set`: to the working folder), or a pattern such as `logs/*.csv` of several tables. "
         "Empty: where `artel data get` puts the set; it is fetched first if missing."},
        data.path);
  field(
      {"data.test_path", "A second file with test data, for `csv`, `libsvm` and `labelled_text`."},
      data.test_path);
  field(
      {"data.target", "Name of the target column, for `csv` and `labelled_text`. Empty: the last."},
      data.target);
  field({.name = "data.task",
         .help = "What is learnt: `classes` or `values` of a `csv` (`automatic`: guessed from the "
                 "column); "
                 "`reconstruct`: each sample is its own target, for autoencoders; `masked`: hidden "
                 "tokens and next sentences of a `text`, for BERT.",
         .choices = {"automatic", "classes", "values", "reconstruct", "masked"}},
        data.task);
  field({"data.ignore", "Columns of a `csv` or `labelled_text` that are left out, such as ids."},
        data.ignore);
  field({"data.categorical", "Columns of a `csv` whose numbers are names, such as postal codes."},
        data.categorical);
  field({"data.scale_target",
         "Values of a `csv` are learnt with mean 0 and deviation 1; predictions and errors have "
         "the unit of the column. The loss is that of the scaled values."},
        data.scale_target);
  field({"data.decimal_comma", "Numbers of a `csv` are written with decimal commas: 1,5."},
        data.decimal_comma);
  field({.name = "data.test_fraction",
         .help = "Share held out at random for testing if the data has no test part. 0: training "
                 "without a test.",
         .most = 0.9},
        data.test_fraction);
  field(
      {.name = "data.samples",
       .help = "Train with so many samples, chosen by the seed, such as for a quick try. 0: all."},
      data.samples);
  field(
      {.name = "data.validation",
       .help = "Share of the training samples, chosen by the seed, that is held out and evaluated "
               "after each epoch; the test part is then left for `artel evaluate`. 0: the test "
               "part is evaluated after each epoch.",
       .most = 0.9},
      data.validation);
  field({"data.balanced",
         "Training samples of rarer classes are repeated until every class has as many as the most "
         "frequent one, so an epoch is longer. See also `train.class_weights`."},
        data.balanced);
  field(
      {.name = "data.folds",
       .help = "Cut the training samples at random into so many parts, of which one is held out in "
               "place of `data.validation`. `artel train --folds` trains once for each. 0: none."},
      data.folds);
  field({.name = "data.fold", .help = "Which of the `data.folds` parts is held out, from 0."},
        data.fold);
  field(
      {"data.augment",
       "Transforms of each image, in the order given: `normalise MEAN... DEVIATION...`, `crop SIZE "
       "[PADDING]`, `flip`, `resize H [W]`, `jitter B [C [S]]`, `cutout SIZE`, "
       "`rotate DEGREES`, `resized_crop SIZE [LEAST]`, `cover SIZE`, `erase [PROBABILITY]`, "
       "`channels 1|3`, `mixup STRENGTH`. "
       "Random ones are skipped for test data."},
      data.augment);
  field(
      {"data.image_size",
       "Side of the images of a `folder`: pictures are scaled to cover it and cut in the middle. "
       "0: the size of the pictures or, if they differ, the median of their shorter sides, at most "
       "224."},
      data.image_size);
  field(
      {"data.skip_broken",
       "Pictures of a `folder` that cannot be decoded are left out, counted and named in the log. "
       "All pictures are decoded once at the start to know. Otherwise they are refused."},
      data.skip_broken);
  field({.name = "data.context", .help = "Tokens in one sample of `text`.", .least = 1},
        data.context);
  field({"data.stride", "Distance between samples of `text`, in tokens. 0: `context`."},
        data.stride);
  field(
      {"data.lines",
       "Each line of a `text` is a sample of its own, such as a name, cut or padded to `context`."},
      data.lines);
  field({"data.tokenizer",
         "How `text` becomes tokens: `character`, `byte`, `bpe N` or `wordpiece N` (learns a "
         "vocabulary of N tokens; `labelled_text` learns `wordpiece 8192` unless told otherwise), "
         "or the path of `vocab.json` with `merges.txt`, `vocab.txt` or "
         "`tokenizer.json`."},
        data.tokenizer);
  field({.name = "data.threads",
         .help = "Background threads that read and augment.",
         .least = 1,
         .most = 256},
        data.threads);

  auto& model = config.model;
  field({"model.name",
         "A model of the zoo, such as `lenet5`, `resnet18`, `vgg11_bn`, `resnet20`; `artel info` "
         "lists "
         "them."},
        model.name);
  field({"model.layers",
         "The layers as text instead of a name: `[\"conv 64 3x3\", \"relu\", \"flatten\", "
         "\"dense 10\"]`."},
        model.layers);
  field({"model.weights",
         "Weights to start from: a file (safetensors, also in several pieces, PyTorch, NPZ), a "
         "run, a checkpoint, or the folder of a published model."},
        model.weights);
  field({"model.new_layers",
         "Parameters whose names begin with one of these are initialised at random even if "
         "`weights` has them: a new head for another task."},
        model.new_layers);
  field({"model.classes", "Number of classes of a zoo model. 0: as many as the data has."},
        model.classes);
  field({"model.small_images",
         "Use the 32 x 32 variant of networks made for 224 x 224 (VGG, ResNet)."},
        model.small_images);
  field({"model.width", "Channels of the first stage, or units of hidden layers. 0: as published."},
        model.width);
  field({"model.depth", "Blocks of a transformer. 0: as published."}, model.depth);
  field({"model.heads", "Attention heads of a transformer. 0: as published."}, model.heads);
  field({"model.positions",
         "Maximum number of positions in a transformer's samples. 0: as published."},
        model.positions);
  field(
      {"model.vocabulary",
       "Number of tokens that a transformer reads, if these are not the classes. 0: as published."},
      model.vocabulary);
  field({"model.patch", "Side of the patches of a vision transformer. 0: as published."},
        model.patch);
  field(
      {"model.hidden", "Units of a transformer's feed-forward networks. 0: four times the width."},
      model.hidden);
  field({"model.activation",
         "Activation of a transformer's feed-forward networks: `gelu`, `gelu_tanh`, `relu` or "
         "`silu`. Empty: as published."},
        model.activation);
  field({.name = "model.epsilon",
         .help = "Added to the variance in a transformer's layer norms. 0: as published.",
         .most = 1},
        model.epsilon);
  field({"model.untied_head",
         "Networks that score tokens (GPT-2, BERT's pre-training heads) use separate weights for "
         "it instead of the token table."},
        model.untied_head);
  field({.name = "model.dropout",
         .help = "Share of values that a transformer drops in training.",
         .most = 0.9},
        model.dropout);

  field(
      {"model.adapters",
       "`lora RANK [ALPHA]`: low-rank adapters beside the dense layers of a transformer, which are "
       "trained while the weights of these layers may be frozen; their names begin with `lora.`. "
       "Empty: none."},
      model.adapters);

  auto& train = config.train;
  field({.name = "train.batch_size", .help = "Samples in one step, over all workers.", .least = 1},
        train.batch_size);
  field({"train.keep_last_batch",
         "Samples of an epoch that do not fill a batch form a smaller one. Otherwise they are left "
         "out, different ones in each epoch."},
        train.keep_last_batch);
  field(
      {"train.epochs", "Number of passes over all samples, 1 or more. Unused if `steps` is given."},
      train.epochs);
  field({"train.steps", "Stop after this many steps in total. 0: `epochs` decides."}, train.steps);
  field({"train.seed", "Seed of everything random: initial weights, order, augmentation, dropout."},
        train.seed);
  field({"train.optimizer",
         "Update rule: a name, or a table with options; see [optimizers](optimizers.md)."},
        train.optimizer);
  field({"train.schedule",
         "Learning-rate schedule: a name, or a table; see [optimizers](optimizers.md)."},
        train.schedule);
  const std::string loss = fmt::format("What is minimised: {}.", one_of(loss_names()));
  field({"train.loss", loss}, train.loss);
  const std::string metrics = fmt::format(
      "What is reported beside the loss: {}; see [metrics](metrics.md). Empty: the accuracy of "
      "data with classes.",
      one_of(metric_names()));
  field({"train.metrics", metrics}, train.metrics);
  field(
      {.name = "train.label_smoothing",
       .help = "Share of the target that is spread over all classes in training. The test loss is "
               "measured without.",
       .most = 1},
      train.label_smoothing);
  field({"train.class_weights",
         "How much each class counts in training: `balanced` (rare classes as much as frequent "
         "ones), or a list of numbers in the order of the classes. For `cross_entropy` and "
         "`binary_cross_entropy`; the test loss is measured without. Empty: all equally."},
        train.class_weights);
  field({"train.clip_norm",
         "Scale the gradient down to this norm. 0: never. The same as `clip_norm` of "
         "`train.optimizer`; only one of them may be given."},
        train.clip_norm);
  field({"train.best_by",
         "What makes an epoch the best one: `loss`, or one of `train.metrics` such as `accuracy`, "
         "on the validation part or, without one, the test part (without both: in training). "
         "`checkpoints/best` names its checkpoint, which `artel evaluate RUN --best` uses."},
        train.best_by);
  field({"train.patience", "Stop after this many epochs without a better `best_by`. 0: never."},
        train.patience);
  field({.name = "train.target_accuracy",
         .help = "Stop once the accuracy on the validation part or, without one, the test part "
                 "reaches this. 0: never.",
         .most = 1},
        train.target_accuracy);
  field({"train.test_batches",
         "The test after each epoch is of at most this many batches of `batch_size` samples, "
         "spread evenly over the part; `artel evaluate` judges all of it. 0: all."},
        train.test_batches);
  field({"train.noise_every",
         "Steps after which the noise scale of gradients is measured, which says how large batches "
         "may usefully become; see [metrics](metrics.md#gradient-noise). 0: never."},
        train.noise_every);
  field({"train.max_seconds", "Stop after this many seconds. 0: never."}, train.max_seconds);
  field({"train.save_every",
         "Steps between further checkpoints, besides those at the end of each epoch and when "
         "training stops. 0: no further ones."},
        train.save_every);
  field({"train.keep_checkpoints", "Checkpoints to keep besides the best. 0: all."},
        train.keep_checkpoints);
  field({"train.freeze", "Parameters whose names begin with one of these are not trained."},
        train.freeze);
  field({"train.cache",
         "What the frozen layers below the lowest trained one compute is computed once for all "
         "epochs and kept in a file (below `$ARTEL_DATA/features`), with the same weights, bit for "
         "bit. Where the samples change from epoch to epoch, or the trained layers read more than "
         "one value of the frozen ones, it is computed in each epoch, and the log says so."},
        train.cache);
  field({"train.tune",
         "Measure once which kernel is fastest for each shape, and keep the choices with the "
         "run (`choices.txt`)."},
        train.tune);
  field({"train.exact_convolutions",
         "Do not use Winograd kernels, whose rounding errors are larger."},
        train.exact_convolutions);
  field({"train.memory_limit",
         "Memory limit for the activations of a worker, such as `\"2 GiB\"`; fewer lanes run "
         "together, and what still does not fit is recomputed. 0: no limit."},
        train.memory_limit);
  field(
      {"train.check_numbers", "Stop at the first layer that outputs NaN or infinity, and name it."},
      train.check_numbers);
  field({"train.check_memory",
         "Stop at the first layer that reads uninitialised memory or writes outside its own "
         "memory: a check of Artel's kernels, several times slower."},
        train.check_memory);
  field({.name = "train.precision",
         .help = "Precision of matrix products: `fp32`, or `bf16` (summed in fp32) if the "
                 "processor has it.",
         .choices = {"fp32", "bf16"}},
        train.precision);

  auto& cluster = config.cluster;
  field({.name = "cluster.workers",
         .help = "Processes that train together on this machine; `-n` is short for this. A range "
                 "such as `\"2..8\"`: the run waits while there are fewer than 2, and lets in no "
                 "more than 8.",
         .least = 1,
         .most = 4096},
        cluster.workers);
  field({.name = "cluster.threads",
         .help = "Cores per worker. 0: all, divided among the workers on a machine.",
         .most = 4096},
        cluster.threads);
  field({.name = "cluster.lanes",
         .help = "Number of equal parts that a batch is cut into. The same number of lanes gives "
                 "the same bits on any number of workers. 0: one per core at the start.",
         .most = 4096},
        cluster.lanes);
  field({"cluster.memory",
         "Memory that each worker has, such as `\"2 GiB\"`: a network that needs more is refused "
         "with what would fit, and `cluster.mesh = \"auto\"` keeps to it. 0: that of the machine, "
         "divided among its workers."},
        cluster.memory);
  const std::vector<std::string> names = strategy_names();
  const std::string strategies = fmt::format(
      "How workers train together: `{}`; see [strategies](#strategies).", join(names, "`, `"));
  field({.name = "cluster.strategy", .help = strategies, .choices = {names.begin(), names.end()}},
        cluster.strategy);
  field({.name = "cluster.transport",
         .help =
             "`auto` (depends on how the run was started), `shm` (one machine), `gloo`, `mpi`, or "
             "`tcp`: in place of `gloo`, with connections that strangers cannot take.",
         .choices = {"auto", "shm", "gloo", "tcp", "mpi"}},
        cluster.transport);
  field({"cluster.encrypt",
         "Encrypt all connections between machines with TLS 1.3, by a key derived from the run's "
         "token; see [security](security.md). Not with MPI, whose connections are its own."},
        cluster.encrypt);
  field({.name = "cluster.instructions",
         .help = "Vector instructions of all workers, because others give other bits: `own` (those "
                 "of each processor; workers that differ are refused), `common` (the best that all "
                 "of those have who begin the run), or at most `sse4`, `avx2`, `avx512` or `neon`.",
         .choices = {"own", "common", "sse4", "avx2", "avx512", "neon"}},
        cluster.instructions);
  field({"cluster.elastic",
         "When a worker dies, the others go on without it, in the same processes and with the bits "
         "of an undisturbed run; not with MPI or servers. Otherwise all stop."},
        cluster.elastic);
  field(
      {.name = "cluster.restarts",
       .help = "How often each worker on this machine is started again after a signal has ended "
               "it, with pauses that grow. One that dies twice before the same step stops the run.",
       .most = 1000},
      cluster.restarts);
  field({.name = "cluster.checkpoint_copies",
         .help = "Machines that keep each checkpoint, that of worker 0 among them, in case one is "
                 "lost for good. Nothing is sent: a worker of each writes its own state.",
         .least = 1,
         .most = 1000},
        cluster.checkpoint_copies);
  field({.name = "cluster.patience",
         .help = "Seconds without a sign of life after which a worker or server counts as dead: it "
                 "is stopped, or its wire is cut. One that only computes gives signs of life.",
         .least = 1,
         .most = 1e6},
        cluster.patience);
  field({.name = "cluster.join_timeout",
         .help = "Seconds for all workers to arrive when the run begins.",
         .least = 1,
         .most = 1e6},
        cluster.join_timeout);
  field({.name = "cluster.timeout",
         .help = "Seconds after which an exchange between living workers is given up.",
         .least = 1,
         .most = 1e6},
        cluster.timeout);
  field({.name = "cluster.wait",
         .help = "Seconds that workers wait for others while there are fewer than "
                 "`cluster.workers` asks for, or too few for their memory.",
         .least = 1,
         .most = 1e9},
        cluster.wait);
  field({.name = "cluster.servers",
         .help = "Number of parameter servers, for the strategies that need them. 0: one.",
         .most = 4096},
        cluster.servers);
  field({"cluster.servers_inside",
         "Servers live inside the worker processes instead of in their own; not with MPI."},
        cluster.servers_inside);

  field({"observe.live",
         "Worker 0 writes what each worker does to `live.json` once a second, for `artel top` and "
         "the "
         "dashboard, and looks for events."},
        config.observe.live);
  field({"observe.on_event",
         "A command that is run when something happens that people should know of: a loss that "
         "explodes or stands still, a worker that comes, goes or is far slower than the others, a "
         "disk that is nearly full, the failure of the run. It gets the kind of event, the step, a "
         "sentence and "
         "the folder of the run as arguments. Training does not wait for it; after 30 seconds it "
         "is ended."},
        config.observe.on_event);
  field({.name = "observe.tensorboard",
         .help = "What the event files for TensorBoard hold: `all`, which after an epoch is also "
                 "histograms of the weights, the confusion matrix and mistakes as pictures, and "
                 "texts; or `scalars` alone.",
         .choices = {"all", "scalars"}},
        config.observe.tensorboard);
  field({.name = "observe.mistakes",
         .help = "Of pictures with classes: how many mistakes of the test after an epoch are kept "
                 "as pictures, those that the network was most certain of (`mistakes.png`, "
                 "`mistakes.json`). 0: none.",
         .most = 1000},
        config.observe.mistakes);
  field({.name = "observe.sample_tokens",
         .help = "Of language models: how many tokens worker 0 writes after an epoch, to see what "
                 "the network has learnt (`texts.jsonl`). 0: none.",
         .most = 100000},
        config.observe.sample_tokens);
  field({"observe.sample_prompt",
         "How these texts begin. Empty: as the first sample of the test part does."},
        config.observe.sample_prompt);

  visit_strategy_keys(cluster.strategy_options, field);
}

}  // namespace artel
