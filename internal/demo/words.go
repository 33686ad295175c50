package demo

// department groups what belongs together, so that a product's name, its
// categories and its description fit each other.
type department struct {
	categories []string
	nouns      []string
	qualities  []string
	uses       []string
}

var departments = []department{
	{
		categories: []string{"Kitchen", "Cookware", "Tea & Coffee", "Knives", "Baking"},
		nouns:      []string{"Skillet", "Kettle", "Chef's Knife", "Mixing Bowl", "Teapot", "Espresso Maker", "Pepper Mill", "Casserole", "Whisk", "Bread Tin", "Cutting Board", "Saucepan"},
		qualities:  []string{"Cast Iron", "Copper", "Enamel", "Stoneware", "Olive Wood", "Carbon Steel", "Hammered", "Nonstick"},
		uses:       []string{"slow Sunday stews", "the first coffee of the day", "a small kitchen with big plans", "crusty bread", "weeknight dinners"},
	},
	{
		categories: []string{"Furniture", "Living Room", "Home Office", "Bedroom", "Storage"},
		nouns:      []string{"Standing Desk", "Armchair", "Bookshelf", "Sideboard", "Bed Frame", "Coffee Table", "Office Chair", "Wardrobe", "Footstool", "Bench", "Nightstand"},
		qualities:  []string{"Walnut", "Oak", "Ash", "Velvet", "Linen", "Bouclé", "Reclaimed Pine", "Rattan", "Lacquered"},
		uses:       []string{"long afternoons of reading", "two screens and a cat", "guests who stay longer than planned", "rooms under a sloping roof", "a quiet corner"},
	},
	{
		categories: []string{"Outdoor", "Camping", "Hiking", "Climbing", "Backpacks"},
		nouns:      []string{"Tent", "Sleeping Bag", "Trekking Pole", "Headlamp", "Backpack", "Camp Stove", "Rain Jacket", "Hammock", "Water Bottle", "Down Vest", "Carabiner"},
		qualities:  []string{"Ultralight", "Four-Season", "Waterproof", "Ripstop", "Titanium", "Insulated", "Alpine", "Packable"},
		uses:       []string{"ridges above the clouds", "three wet days in a row", "the last bus to the trailhead", "a night at minus ten", "fast weekends"},
	},
	{
		categories: []string{"Cycling", "Bicycles", "Bike Parts", "Helmets", "Bike Bags"},
		nouns:      []string{"Gravel Bike", "Commuter Bike", "Helmet", "Pannier", "Saddle", "Chainset", "Front Light", "Floor Pump", "Handlebar Tape", "Cargo Rack", "Track Pump"},
		qualities:  []string{"Steel", "Aluminium", "Carbon", "Reflective", "Tubeless", "Belt-Drive", "Waxed", "Vented"},
		uses:       []string{"rain, cobbles and tram rails", "the long way home", "school runs with two children", "a thousand kilometres a month", "winter commutes"},
	},
	{
		categories: []string{"Audio", "Headphones", "Speakers", "Turntables", "Studio"},
		nouns:      []string{"Headphones", "Bookshelf Speaker", "Turntable", "Amplifier", "Microphone", "Soundbar", "Earbuds", "Mixer", "Radio", "Preamp"},
		qualities:  []string{"Wireless", "Open-Back", "Noise-Cancelling", "Tube", "Portable", "Studio", "Compact", "High-Resolution"},
		uses:       []string{"late-night listening", "a record collection that keeps growing", "podcasts made at the kitchen table", "open-plan offices", "long train rides"},
	},
	{
		categories: []string{"Clothing", "Knitwear", "Shoes", "Jackets", "Accessories"},
		nouns:      []string{"Sweater", "Trail Socks", "Chelsea Boots", "Overshirt", "Beanie", "Scarf", "Parka", "Sneakers", "Cardigan", "Belt", "Gloves"},
		qualities:  []string{"Merino", "Cashmere", "Organic Cotton", "Waxed Canvas", "Suede", "Fair Isle", "Quilted", "Lambswool"},
		uses:       []string{"the first frost", "layering under a coat", "harbour winds", "every day of the week", "people who hate shopping"},
	},
	{
		categories: []string{"Garden", "Garden Tools", "Seeds", "Pots & Planters", "Watering"},
		nouns:      []string{"Pruning Shears", "Planter", "Watering Can", "Garden Fork", "Raised Bed", "Hose Reel", "Trowel", "Greenhouse", "Bird Feeder", "Compost Bin"},
		qualities:  []string{"Galvanised", "Terracotta", "Forged", "Cedar", "Self-Watering", "Folding", "Zinc", "Long-Handled"},
		uses:       []string{"balconies that face north", "heavy clay soil", "tomatoes in July", "gardeners with bad knees", "a hedge that has its own ideas"},
	},
	{
		categories: []string{"Toys", "Board Games", "Puzzles", "Building Blocks", "Crafts"},
		nouns:      []string{"Puzzle", "Marble Run", "Train Set", "Board Game", "Building Blocks", "Kite", "Doll House", "Modelling Clay", "Card Game", "Microscope"},
		qualities:  []string{"Wooden", "Magnetic", "Cooperative", "Hand-Painted", "Glow-in-the-Dark", "Travel", "Giant", "Classic"},
		uses:       []string{"rainy holidays", "four players and one sore loser", "curious six-year-olds", "the back seat of the car", "quiet mornings"},
	},
	{
		categories: []string{"Lighting", "Desk Lamps", "Floor Lamps", "Pendants", "Candles"},
		nouns:      []string{"Desk Lamp", "Floor Lamp", "Pendant", "Lantern", "Candle Holder", "Wall Light", "String Lights", "Reading Light", "Night Light"},
		qualities:  []string{"Brass", "Opal Glass", "Dimmable", "Paper", "Smoked Glass", "Articulated", "Cordless", "Matte Black"},
		uses:       []string{"evening pages", "a table for eight", "hallways without windows", "the balcony in August", "desks that double as dining tables"},
	},
	{
		categories: []string{"Stationery", "Notebooks", "Pens & Ink", "Paper", "Desk"},
		nouns:      []string{"Notebook", "Fountain Pen", "Ink", "Sketchbook", "Pencil Case", "Letter Opener", "Desk Pad", "Calendar", "Mechanical Pencil", "Ruler"},
		qualities:  []string{"Clothbound", "Dotted", "Piston-Filled", "Recycled", "Letterpress", "Brushed Brass", "Pocket", "Leather"},
		uses:       []string{"meetings that could have been a letter", "field notes", "left-handed writers", "lists of lists", "the novel that is almost finished"},
	},
}

// Every product may be in one of these too, which makes them hot parents.
var shelves = []string{"Sale", "New Arrivals", "Gifts", "Bestsellers", "Last Chance"}

var series = []string{"Nova", "Fjord", "Atlas", "Willow", "Meridian", "Pioneer", "Aurora", "Harbour", "Juniper", "Solstice", "Ember", "Tundra",
	"Lumen", "Cobalt", "Saffron", "Drift", "Cinder", "Orchard", "Vesper", "Halcyon", "Quarry", "Thistle", "Bramble", "Zephyr"}

var brandStarts = []string{"Nord", "Hal", "Brae", "Lind", "Kest", "Mar", "Oster", "Vel", "Tarn", "Ash", "Grim", "Sol", "Fen", "Cald", "Wren", "Ros"}
var brandEnds = []string{"vik", "den", "ström", "more", "field", "by", "haus", "wick", "ello", "mann", "sund", "ley", "ora", "berg", "ton"}
var brandKinds = []string{"", "", "", " & Sons", " Works", " Supply", " Atelier", " Goods", " Co.", " & Daughters"}

var countries = [][2]string{
	{"AT", "Austria"}, {"AU", "Australia"}, {"BE", "Belgium"}, {"BR", "Brazil"}, {"CA", "Canada"}, {"CH", "Switzerland"}, {"CI", "Côte d'Ivoire"},
	{"CL", "Chile"}, {"CZ", "Czechia"}, {"DE", "Germany"}, {"DK", "Denmark"}, {"ES", "Spain"}, {"FI", "Finland"}, {"FR", "France"},
	{"GB", "United Kingdom"}, {"IE", "Ireland"}, {"IN", "India"}, {"IS", "Iceland"}, {"IT", "Italy"}, {"JP", "Japan"}, {"KR", "South Korea"},
	{"MX", "Mexico"}, {"NL", "Netherlands"}, {"NO", "Norway"}, {"NZ", "New Zealand"}, {"PL", "Poland"}, {"PT", "Portugal"}, {"SE", "Sweden"},
	{"TR", "Türkiye"}, {"US", "United States"}, {"VN", "Vietnam"}, {"ZA", "South Africa"},
}

// reviewTitles by rating, from one star to five.
var reviewTitles = [5][]string{
	{"Broke after a week", "Not what I ordered", "Sent it back", "Smells like a tyre", "Never again"},
	{"Disappointing for the price", "Looks better in the pictures", "Smaller than expected", "The zip is a joke", "Two stars for the box"},
	{"Does the job", "Fine, nothing special", "Good idea, sloppy finish", "Average", "It's okay I suppose"},
	{"Solid and well made", "Very happy with it", "Nearly perfect", "Better than my old one", "Would buy again"},
	{"Best purchase this year", "Absolutely love it", "My neighbour wants one too", "Worth every penny", "A joy to use", "Exactly right"},
}

var reviewBodies = []string{
	"Arrived quickly and well packed.", "I have used it every day since.", "The colour is a little darker than on the screen.",
	"Instructions could be clearer.", "My partner rolled their eyes and now uses it more than I do.", "Feels like it will last for years.",
	"One screw was missing, support sent it the next day.", "Heavier than I thought, in a good way.", "The cat approves.",
	"I compared it with three others and would choose it again.", "Wish it came in green.", "Survived a move and two children.",
}

var sentences = []string{
	"Made in small batches and checked by hand.", "Every part can be replaced.", "Comes with a ten-year guarantee.",
	"The finish grows more beautiful with use.", "Packs flat and ships without plastic.", "Designed with people who repair things for a living.",
	"Cleans with a damp cloth.", "Assembled in ten minutes with one tool.", "Our most requested piece since the first catalogue.",
}
