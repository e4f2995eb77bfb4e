// Fused element-wise programs: a chain of operations in one pass over memory.
//
// A program works on registers. Registers [0, inputs) hold the inputs, each instruction then writes
// the next one. A kernel runs it block by block; a block of all registers fits the first-level
// cache, so only inputs and outputs touch memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "artel/base/thread_pool.h"

namespace artel::kernels {

// A formula of element_ops.cc, by its place there, or a user's function.
enum class ElementOp : int16_t { custom = -1 };

// Empty if the name has no formula.
std::optional<ElementOp> find_element_op(std::string_view name);

// A user's op on n elements; operands that it does not have are null, and `out` may be the memory
// of one of them.
using ElementFunction =
    std::function<void(const float* a, const float* b, const float* c, float* out, int64_t n)>;

struct ElementInstruction {
  ElementOp op;
  int a = -1, b = -1, c = -1;
  float immediate = 0;
  std::shared_ptr<const ElementFunction> function = {};  // of `custom`
};

// The number of registers that the instruction reads.
int operand_count(const ElementInstruction& instruction);

struct ElementProgram {
  int inputs = 0;
  std::vector<ElementInstruction> code;
  std::vector<int> outputs;  // registers
};

// Strides for each axis of the iteration shape, in elements; 0 repeats the operand along the axis.
struct ElementOperand {
  std::vector<int64_t> strides;
};

// Immutable after construction; `run` may be called from several threads with different pools.
class ElementKernel {
 public:
  // Throws if a register or the number of strides is wrong, or an output stride is 0 on an axis
  // longer than 1.
  ElementKernel(ElementProgram program, std::vector<int64_t> extents,
                std::vector<ElementOperand> inputs, std::vector<ElementOperand> outputs);

  // An output may be the same memory as an input of identical strides; other overlaps are wrong.
  void run(ThreadPool& pool, const float* const* inputs, float* const* outputs) const;

 private:
  // The location of a register while a block runs.
  struct Output {
    int reg;
    std::vector<int64_t> strides;
    bool dense;   // the elements of a block are adjacent in memory
    bool direct;  // ... and may be written as soon as they are computed
  };
  struct Input {
    std::vector<int64_t> strides;
    bool dense;
    bool invariant;  // all full blocks see the same values
  };

  void merge_axes();
  void choose_block();
  void assign_slots();
  void run_blocks(int64_t begin, int64_t end, const float* const* inputs,
                  float* const* outputs) const;

  ElementProgram program_;
  std::vector<int64_t> extents_;  // merged, at least two axes, outermost first
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  std::vector<int> slots_;  // buffer of each register
  int slot_count_ = 0;
  int64_t block_rows_ = 1, block_columns_ = 1;  // a block is a rectangle of the last two axes
  int64_t row_blocks_ = 1, column_blocks_ = 1;  // blocks along them
  int64_t blocks_ = 0;
};

}  // namespace artel::kernels
