package sqldriver

// Op says what a Node is.
type Op uint8

// The operators; behind each the meaning of Args and Text.
const (
	OpColumn       Op = iota // Text: the name; Quoted
	OpNumber                 // Text: digits[.digits][e±digits]
	OpString                 // Text: the string's value
	OpWord                   // Text: a word of a function's own grammar: YEAR, BOTH
	OpTyped                  // DATE '…', TIMESTAMP '…' …: Name: the type in upper case, Text: the string's value
	OpNull                   //
	OpTrue                   //
	OpFalse                  //
	OpCall                   // Name: the function in upper case; Args
	OpCast                   // Args[0] AS Type
	OpCase                   // Args: [operand] when, then, …, [else]; HasOperand, HasElse
	OpNegate                 // - Args[0]
	OpNot                    //
	OpAnd                    //
	OpOr                     //
	OpAdd                    //
	OpSubtract               //
	OpMultiply               //
	OpDivide                 //
	OpModulo                 //
	OpConcat                 // ||
	OpJSONGet                // ->
	OpJSONText               // ->>
	OpEqual                  // the six comparisons are in this order
	OpNotEqual               //
	OpLess                   //
	OpLessEqual              //
	OpGreater                //
	OpGreaterEqual           //
	OpDistinct               // IS DISTINCT FROM; Not: IS NOT DISTINCT FROM
	OpIsNull                 // Not
	OpIsTrue                 // Not
	OpIsFalse                // Not
	OpIn                     // Args[0] IN the others; Not
	OpBetween                // Args[0] BETWEEN Args[1] AND Args[2]; Not
	OpLike                   // Args[0] LIKE Args[1] [ESCAPE Args[2]]; Not
	OpILike                  //
)

// Node is one node of an expression.
type Node struct {
	Op     Op
	Offset int // byte in the source at which the node begins
	Text   string
	Name   string
	Args   []*Node
	Type   Type

	Not                 bool
	Quoted              bool // a column name in quotes
	Parens              bool // stands in parentheses of its own
	HasOperand, HasElse bool // CASE
	Separated           bool // a call with words between its arguments: SUBSTRING(x FROM 2), TRIM(BOTH FROM x)
}

// Type is the target of a CAST.
type Type struct {
	Name   string // upper case words, one blank between: "DOUBLE PRECISION"
	Params []int  // DECIMAL(10, 2)
	Offset int
}

// SyntaxError says where the source is no expression of the subset.
type SyntaxError struct {
	Offset  int    // byte in the source
	Near    string // what stands there; empty at the end
	Message string
	Hint    string
}

func (e *SyntaxError) Error() string { return e.Message }
