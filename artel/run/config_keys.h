// The one table of all configuration keys. Internal to run/config*.cc.
#pragma once

#include <limits>
#include <string_view>
#include <vector>

#include "artel/run/config.h"

namespace artel {

struct Key {
  std::string_view name;
  std::string_view help;
  // The range of a number.
  double least = 0;
  double most = std::numeric_limits<double>::infinity();
  // The values that a text may have; empty: any.
  std::vector<std::string_view> choices = {};
};

// Calls field(Key, member) for each key in the order of the documentation.
void visit_keys(auto& config, auto&& field) {
  auto& data = config.data;
  field(
      {"data.set",
       "A set by name (`artel data list` shows them), or the kind of what is at `data.path`: "
       "`folder` (of pictures), `csv`, `npz`, `npy`, `libsvm`, `text`, or `labelled_text` (CSV)."},
      data.set);
  field({"data.path",
         "Folder or file of the data. Empty: where `artel data get` puts the set, which is done "
         "first if it is not there."},
        data.path);
  field({"data.test_path", "A second file with test data, for `csv` and `libsvm`."},
        data.test_path);
  field({"data.target", "Name of the column with the target, for `csv`. Empty: the last."},
        data.target);
  field({.name = "data.task",
         .help = "What is learnt: `classes` or `values` of a `csv` (`automatic`: as they look); "
                 "`reconstruct`: each sample is its own target, for autoencoders; `masked`: hidden "
                 "tokens and next sentences of a `text`, for BERT.",
         .choices = {"automatic", "classes", "values", "reconstruct", "masked"}},
        data.task);
  field({.name = "data.test_fraction",
         .help = "Share that is cut off at random for testing where the data has no test part. "
                 "0: training goes on untested.",
         .most = 0.9},
        data.test_fraction);
  field({.name = "data.validation",
         .help = "Share of the training samples that is held out, chosen by the seed, and judged "
                 "after each epoch in place of the test data. 0: the test data is.",
         .most = 0.9},
        data.validation);
  field({"data.augment",
         "Steps applied to each image: `normalise MEAN... DEVIATION...`, `crop SIZE [PADDING]`, "
         "`flip`, `resize H [W]`, `jitter B [C [S]]`, `cutout SIZE`, `mixup STRENGTH`. Steps of "
         "chance are left out for test data."},
        data.augment);
  field({"data.image_size",
         "Side of the images of a `folder`: pictures are scaled to cover it and cut in the middle. "
         "0: as the pictures are, if all have the same size."},
        data.image_size);
  field({.name = "data.context", .help = "Tokens of one sample of `text`.", .least = 1},
        data.context);
  field({"data.stride", "Distance between samples of `text`, in tokens. 0: `context`."},
        data.stride);
  field({"data.tokenizer",
         "How `text` becomes tokens: `character`, `byte`, `bpe N` or `wordpiece N` (learns N "
         "byte pairs or pieces), or the path of `vocab.json` with `merges.txt`, `vocab.txt` or "
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
  field(
      {"model.weights",
       "Weights to begin with: a file (safetensors, also in several pieces, PyTorch, NPZ), a run, "
       "a checkpoint, or the folder of a published model."},
      model.weights);
  field({"model.new_layers",
         "Parameters whose names begin with one of these begin at random, whatever `weights` has: "
         "a new head for another task."},
        model.new_layers);
  field({"model.classes", "Number of classes of a model of the zoo. 0: as many as the data has."},
        model.classes);
  field({"model.small_images",
         "The variant for 32 x 32 of networks made for 224 x 224 (VGG, ResNet)."},
        model.small_images);
  field({"model.width", "Channels of the first stage, or units of hidden layers. 0: as published."},
        model.width);
  field({"model.depth", "Blocks of a transformer. 0: as published."}, model.depth);
  field({"model.heads", "Attention heads of a transformer. 0: as published."}, model.heads);
  field({"model.positions", "Most positions of a transformer's samples. 0: as published."},
        model.positions);
  field({"model.vocabulary",
         "Tokens that a transformer reads, where they are not the classes. 0: as published."},
        model.vocabulary);
  field({"model.patch", "Side of the patches of a vision transformer. 0: as published."},
        model.patch);
  field(
      {"model.hidden", "Units of a transformer's feed-forward networks. 0: four times the width."},
      model.hidden);
  field({"model.activation",
         "Of a transformer's feed-forward networks: `gelu`, `gelu_tanh`, `relu` or `silu`. Empty: "
         "as published."},
        model.activation);
  field({.name = "model.epsilon",
         .help = "What a transformer's layer norms add to variances. 0: as published.",
         .most = 1},
        model.epsilon);
  field({"model.untied_head",
         "A network that scores tokens (GPT-2, BERT's heads of the first stage) does so by weights "
         "of their own, not by its table of tokens."},
        model.untied_head);
  field(
      {.name = "model.dropout", .help = "Share that a transformer drops in training.", .most = 0.9},
      model.dropout);

  auto& train = config.train;
  field({.name = "train.batch_size",
         .help = "Samples of one step, of all workers together.",
         .least = 1},
        train.batch_size);
  field(
      {"train.keep_last_batch",
       "The samples of an epoch that do not fill a batch make a smaller one. Otherwise each epoch "
       "leaves other ones out."},
      train.keep_last_batch);
  field({"train.epochs", "Times that all samples are seen. Unused if `steps` is given."},
        train.epochs);
  field({"train.steps", "Stop after so many steps in all. 0: by `epochs`."}, train.steps);
  field({"train.seed", "Decides everything random: weights, order, augmentation, dropout."},
        train.seed);
  field({"train.optimizer",
         "Update rule: a name, or a table with options; see [optimizers](optimizers.md)."},
        train.optimizer);
  field({"train.schedule",
         "Learning rate over time: a name, or a table; see [optimizers](optimizers.md)."},
        train.schedule);
  field(
      {"train.loss", "`cross_entropy`, `mse`, `l1`, `smooth_l1`, `binary_cross_entropy` or `kl`."},
      train.loss);
  field(
      {.name = "train.label_smoothing",
       .help = "Share of the target that is spread over all classes in training. The test loss is "
               "measured without.",
       .most = 1},
      train.label_smoothing);
  field({"train.clip_norm",
         "Scale the gradient down to this length. 0: never. The same as `clip_norm` of "
         "`train.optimizer`; only one of them may be given."},
        train.clip_norm);
  field({"train.l1", "With `ddpg`: weight of the sum of absolute weights, without the bias."},
        train.l1);
  field({"train.l2", "With `ddpg`: weight of half the sum of squared weights, without the bias."},
        train.l2);
  field({"train.tolerance",
         "With `ddpg`: stop when a pass changes the loss by less than this part. 0: never."},
        train.tolerance);
  field({"train.patience", "Stop after so many epochs without a better test loss. 0: never."},
        train.patience);
  field({.name = "train.target_accuracy",
         .help = "Stop once the test accuracy reaches this. 0: never.",
         .most = 1},
        train.target_accuracy);
  field({"train.max_seconds", "Stop after this time. 0: never."}, train.max_seconds);
  field({"train.save_every",
         "Steps between checkpoints. 0: one at the end of each epoch. There is always one when "
         "training stops. With `ddpg`: passes; 0: one every ten seconds."},
        train.save_every);
  field({"train.keep_last", "Checkpoints to keep besides the best. 0: all."}, train.keep_last);
  field({"train.freeze", "Parameters whose names begin with one of these are not trained."},
        train.freeze);
  field({"train.tune",
         "Measure which kernel is the fastest for each shape once, and keep the choices with the "
         "run (`plan.txt`)."},
        train.tune);
  field({"train.exact_convolutions", "No Winograd kernels, whose rounding errors are larger."},
        train.exact_convolutions);
  field({"train.memory_limit",
         "Most memory for the activations of one lane, such as `\"2 GiB\"`; what does not fit is "
         "recomputed. 0: no limit."},
        train.memory_limit);
  field({"train.check_numbers", "Stop at the first layer that gives NaN or infinity, naming it."},
        train.check_numbers);
  field({"train.check_memory",
         "Stop at the first layer that reads memory nobody wrote, or writes memory that is not its "
         "own: a check of Artel's kernels, several times slower."},
        train.check_memory);
  field({.name = "train.precision",
         .help = "What products are computed in: `fp32`, or `bf16` (summed in fp32) where the "
                 "processor has it.",
         .choices = {"fp32", "bf16"}},
        train.precision);

  auto& cluster = config.cluster;
  field({.name = "cluster.workers",
         .help = "Processes that train together on this machine; `-n` is short for it.",
         .least = 1,
         .most = 4096},
        cluster.workers);
  field({.name = "cluster.threads",
         .help = "Cores of each worker. 0: all, divided among the workers of a machine.",
         .most = 4096},
        cluster.threads);
  field({.name = "cluster.lanes",
         .help = "Equal parts that a batch is cut into. Equal lanes give equal bits on any number "
                 "of workers. 0: one for each core at the start.",
         .most = 4096},
        cluster.lanes);
  field(
      {.name = "cluster.strategy",
       .help = "How gradients meet: `auto`, `allreduce` (always exact), `ring`, `tree`, `halving`, "
               "`hierarchical`, `coordinator`, `ps`, `downpour` or `ddpg`.",
       .choices = {"auto", "allreduce", "ring", "tree", "halving", "hierarchical", "coordinator",
                   "ps", "downpour", "ddpg"}},
      cluster.strategy);
  field({.name = "cluster.reduction",
         .help = "`exact`: the same bits on any number of workers; `fast`: not necessarily.",
         .choices = {"exact", "fast"}},
        cluster.reduction);
  field({"cluster.compress", "How gradients are packed for the wire, such as `\"top-k 1%\"`."},
        cluster.compress);
  field({.name = "cluster.local_steps",
         .help = "Steps between averages of the workers' weights. 1: gradients meet at each step.",
         .least = 1},
        cluster.local_steps);
  field({.name = "cluster.outer_momentum",
         .help = "With `local_steps`: momentum of the average's own path. 0: the plain average.",
         .most = 0.999},
        cluster.outer_momentum);
  field({.name = "cluster.outer_lr",
         .help = "With `local_steps`: how far to go towards the average; DiLoCo's 0.7 goes with an "
                 "`outer_momentum` of 0.9.",
         .least = 1e-6},
        cluster.outer_lr);
  field({.name = "cluster.coordinators",
         .help = "Workers that add up for the others, for the strategy `coordinator`.",
         .least = 1},
        cluster.coordinators);
  field({.name = "cluster.transport",
         .help = "`auto` (whatever the start suggests), `shm` (one machine), `gloo` or `mpi`.",
         .choices = {"auto", "shm", "gloo", "mpi"}},
        cluster.transport);
  field({"cluster.allow_lossy", "Let `auto` choose compression and local steps too."},
        cluster.allow_lossy);
  field({.name = "cluster.servers",
         .help = "Parameter servers, for the strategies `ps`, `downpour` and `ddpg`. 0: one.",
         .most = 4096},
        cluster.servers);
  field({"cluster.delay",
         "Iterations that a worker may be ahead of the slowest, for the same strategies; "
         "`\"none\"`: no limit."},
        cluster.delay);
  field({"cluster.servers_inside",
         "Servers live inside of the worker processes instead of in their own; not with MPI."},
        cluster.servers_inside);
  field({.name = "cluster.push_every",
         .help = "With `downpour`: steps between pushes of a worker's gradients.",
         .least = 1},
        cluster.push_every);
  field({.name = "cluster.fetch_every",
         .help = "With `downpour`: steps after which a worker gets new weights.",
         .least = 1},
        cluster.fetch_every);
  field({"cluster.synchronous_epochs",
         "With `downpour`: epochs in the beginning in which all workers go in step."},
        cluster.synchronous_epochs);
  field({.name = "cluster.blocks",
         .help = "With `ddpg`: blocks that the features are cut into.",
         .least = 1,
         .most = 1e6},
        cluster.blocks);
  field({"cluster.block_order",
         "With `ddpg`: numbers of blocks in the order of visits, as texts. Empty: at random."},
        cluster.block_order);
  field({"cluster.block_rate",
         "With `ddpg`: part of the safe step that is taken when there is no delay."},
        cluster.block_rate);
  field({"cluster.delay_damping",
         "With `ddpg`: the step is divided by 1 + this times (delay - 1)^2 / blocks."},
        cluster.delay_damping);
  field({"cluster.filters",
         "With `ddpg`, what makes messages smaller: `key cache`, `changes` (servers send changed "
         "weights only), `kkt SHARE`, `skip SHARE`, or a codec such as `fp16`."},
        cluster.filters);
}

}  // namespace artel
